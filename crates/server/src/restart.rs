//! Restart of the process after a failed write or sync of the log.
//!
//! After a failed sync the content of the file is unknown: the page cache marks pages as clean that the disk does not
//! have. Opening the database is the remedy: it reads the log, writes and syncs the result again
//! (`tidalite_ingest::wal::log::replay`), and acknowledges nothing before. Therefore the process executes itself again, with
//! the same process id and arguments, so that no state of the failed process remains in memory.

use crate::config::ENV_RESTARTS;
use crate::logging;
use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The exit code of a server whose log could not be written or synced.
pub const LOG_FAILED: u8 = 3;

/// Maximum number of restarts within [`PERIOD`].
const RESTARTS_MAX: u32 = 5;
const PERIOD: Duration = Duration::from_secs(600);
/// Delay before the second restart; doubled for each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of restarts in the current period, and the time of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Restarts {
    count: u32,
    /// Seconds since 1970.
    first: u64,
}

impl Restarts {
    fn parse(text: &str) -> Option<Restarts> {
        let (count, first) = text.split_once(':')?;
        Some(Restarts { count: count.parse().ok()?, first: first.parse().ok()? })
    }

    /// Counts one more restart; `None` beyond [`RESTARTS_MAX`].
    fn next(self, now: u64) -> Option<Restarts> {
        if now.saturating_sub(self.first) >= PERIOD.as_secs() {
            return Some(Restarts { count: 1, first: now });
        }
        (self.count < RESTARTS_MAX).then_some(Restarts { count: self.count + 1, ..self })
    }

    /// Returns the delay before this restart.
    fn pause(self) -> Duration {
        match self.count.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => PAUSE * (1 << doublings.min(RESTARTS_MAX)),
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

fn so_far() -> Restarts {
    env::var(ENV_RESTARTS).ok().and_then(|text| Restarts::parse(&text)).unwrap_or_default()
}

/// Restarts the process; returns only if the restart fails or the limit is reached.
pub fn begin_again() -> ExitCode {
    let Some(next) = so_far().next(now()) else {
        tracing::error!(times = RESTARTS_MAX, "the log failed again and again; the server ends");
        logging::flush();
        return ExitCode::from(LOG_FAILED);
    };
    tracing::warn!(times = next.count, pause_s = next.pause().as_secs(), "restarting");
    logging::flush();
    std::thread::sleep(next.pause());
    let error = exec(next);
    tracing::error!(%error, "could not restart");
    logging::flush();
    ExitCode::from(LOG_FAILED)
}

/// Handles a failed start: after a restart the next attempt may succeed, because the disk may need some time.
pub fn failed_start(message: &str) -> ExitCode {
    let restarts = so_far();
    let is_again = restarts.count > 0 && now().saturating_sub(restarts.first) < PERIOD.as_secs();
    if !is_again {
        logging::flush();
        return crate::process::fail(1, message);
    }
    tracing::error!(message, "the start failed");
    begin_again()
}

fn exec(next: Restarts) -> std::io::Error {
    let mut arguments = env::args_os();
    // On Linux this is the running program even if its file was replaced, when its path would end in " (deleted)".
    let running = Path::new("/proc/self/exe");
    let program = match running.exists() {
        true => running.to_owned(),
        false => match env::current_exe() {
            Ok(program) => program,
            Err(error) => return error,
        },
    };
    let mut command = Command::new(program);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments).env(ENV_RESTARTS, format!("{}:{}", next.count, next.first)).exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_and_delays_of_restarts() {
        let mut restarts = Restarts::default();
        let mut pauses = Vec::new();
        while let Some(next) = restarts.next(1_000) {
            assert_eq!(Restarts::parse(&format!("{}:{}", next.count, next.first)), Some(next));
            pauses.push(next.pause().as_secs());
            restarts = next;
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8]);
        assert_eq!(restarts.next(1_000 + PERIOD.as_secs() - 1), None);
        assert_eq!(restarts.next(1_000 + PERIOD.as_secs()), Some(Restarts { count: 1, first: 1_600 }));
        assert_eq!(Restarts::parse("x"), None);
    }
}
