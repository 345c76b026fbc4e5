//! Memory available to this process: the machine's memory, or the limit of its control group.

use std::fs::read_to_string;
use std::path::Path;

/// Returns bytes; `None` if the system does not report the size.
pub(crate) fn memory_bytes() -> Option<usize> {
    let total = read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let group = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&group).into_iter().filter_map(|file| limit_of(&read_to_string(file).ok()?));
    total.into_iter().chain(limits).min()
}

fn total_of(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// Returns the limit files of a control group and its ancestors, of either cgroup version.
fn limit_files(cgroup: &str) -> Vec<std::path::PathBuf> {
    let own = cgroup.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let is_of_memory = controllers.split(',').any(|name| name == "memory");
        let (root, file) = match (controllers, is_of_memory) {
            ("", _) => ("/sys/fs/cgroup", "memory.max"),
            (_, true) => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        Some((root, file, path))
    });
    own.flat_map(|(root, file, path)| {
        let groups = Path::new(path.trim_start_matches('/')).ancestors();
        groups.map(move |group| Path::new(root).join(group).join(file)).collect::<Vec<_>>()
    })
    .collect()
}

/// Parses a limit; `max` means no limit.
fn limit_of(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_understood() {
        assert_eq!(total_of("MemTotal:       24563720 kB\nMemFree:        1 kB\n"), Some(24_563_720 * 1024));
        assert_eq!(total_of("MemFree: 1 kB"), None);
        assert_eq!((limit_of("max\n"), limit_of("1073741824\n")), (None, Some(1 << 30)));
        let files = |text: &str| -> Vec<String> {
            limit_files(text).iter().map(|file| file.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(
            files("0::/user.slice/a:b\n"),
            [
                "/sys/fs/cgroup/user.slice/a:b/memory.max",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            files("3:cpu,memory:/x\n2:cpuset:/\n"),
            ["/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
        assert!(files("nonsense").is_empty());
    }
}
