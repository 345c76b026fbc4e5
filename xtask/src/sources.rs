//! Rules about source files that are rules about their text.

use std::fs;
use std::path::Path;

use crate::files;

/// The only rooms with unsafe code.
const UNSAFE_ROOMS: [&str; 4] = ["kernels", "jit", "python", "memory"];

pub fn check(root: &Path, offences: &mut Vec<String>) {
    for path in files::rust_sources(root) {
        match fs::read_to_string(root.join(&path)) {
            Ok(text) => offences.extend(file_offences(&path, &text)),
            Err(error) => offences.push(format!("{path}: {error}")),
        }
    }
}

fn file_offences(path: &str, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let is_tests = path.ends_with("tests.rs") || path.contains("/tests/");
    if !is_tests && !text.starts_with("//!") {
        out.push(format!(
            "{path} has no header: start it with //! and what comes in, what goes out, what always holds"
        ));
    }
    let is_root = path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    if is_root
        && !UNSAFE_ROOMS.iter().any(|room| path.starts_with(&format!("crates/{room}/")))
        && !text.contains("#![forbid(unsafe_code)]")
    {
        out.push(format!("{path} does not say #![forbid(unsafe_code)]"));
    }
    // Put together at run time, or this file would offend.
    let (ignore, sleep) = (concat!("#[", "ignore"), concat!("sleep", "("));
    let mut in_tests = is_tests;
    for (number, line) in text.lines().enumerate() {
        in_tests |= line.trim() == "#[cfg(test)]";
        let code = line.split("//").next().unwrap_or_default();
        if code.contains(ignore) {
            out.push(format!("{path}:{} ignores a test: fix it or delete it", number + 1));
        }
        if in_tests && code.contains(sleep) {
            out.push(format!("{path}:{} sleeps in a test: wait for what it waits for", number + 1));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_finds_its_offender() {
        let count = |path: &str, text: &str| file_offences(path, text).len();
        let header = "//! Header.\n";
        assert_eq!(count("crates/a/src/b.rs", header), 0);
        assert_eq!(count("crates/a/src/b.rs", "fn f() {}\n"), 1);
        assert_eq!(count("crates/a/src/b/tests.rs", "use super::*;\n"), 0);
        assert_eq!(count("crates/a/src/lib.rs", header), 1);
        assert_eq!(count("crates/kernels/src/lib.rs", header), 0);
        let nap = concat!("std::thread::sleep", "(d);\n");
        assert_eq!(count("crates/a/src/b.rs", &format!("{header}{nap}")), 0);
        assert_eq!(count("crates/a/src/b.rs", &format!("{header}#[cfg(test)]\nmod tests {{\n{nap}")), 1);
        assert_eq!(count("crates/a/tests/b.rs", &format!("{header}// {nap}")), 0);
        assert_eq!(count("crates/a/src/b.rs", &format!("{header}{}]\n", concat!("#[", "ignore"))), 1);
    }
}
