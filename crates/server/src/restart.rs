//! What the process does when the log could not be written or synced.
//!
//! After a failed sync nobody knows what the file holds, and the system shows pages as written that the disk does not
//! have. What to do then is what every open does: read the log, write what was read once more and sync it
//! (`tidalite_ingest::wal::log::replay`), and acknowledge nothing before. So the process begins again as a whole: under
//! the same process id, with the same arguments, and with nothing of it left but what is on the disk.

use crate::config::ENV_RESTARTS;
use crate::logging;
use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The exit code of a server whose log could not be written or synced.
pub const LOG_FAILED: u8 = 3;

/// So often the process begins again within [`PERIOD`].
const RESTARTS_MAX: u32 = 5;
const PERIOD: Duration = Duration::from_secs(600);
/// Before the second time; twice as long before each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// How often the process began again, and when for the first time of these.
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

    /// With one more; `None` if that is too many.
    fn next(self, now: u64) -> Option<Restarts> {
        if now.saturating_sub(self.first) >= PERIOD.as_secs() {
            return Some(Restarts { count: 1, first: now });
        }
        (self.count < RESTARTS_MAX).then_some(Restarts { count: self.count + 1, ..self })
    }

    /// How long to wait before the process begins for the `count`th time.
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

/// Makes the process begin again; returns if that is not possible, or was too often.
pub fn begin_again() -> ExitCode {
    let Some(next) = so_far().next(now()) else {
        tracing::error!(times = RESTARTS_MAX, "the log failed again and again; the server ends");
        logging::flush();
        return ExitCode::from(LOG_FAILED);
    };
    tracing::warn!(times = next.count, pause_s = next.pause().as_secs(), "beginning again");
    logging::flush();
    std::thread::sleep(next.pause());
    let error = exec(next);
    tracing::error!(%error, "could not begin again");
    logging::flush();
    ExitCode::from(LOG_FAILED)
}

/// The end of a start that failed: after a failed log the disk may need some time.
pub fn failed_start(message: &str) -> ExitCode {
    let restarts = so_far();
    let is_again = restarts.count > 0 && now().saturating_sub(restarts.first) < PERIOD.as_secs();
    if !is_again {
        logging::flush();
        return crate::cli::fail(1, message);
    }
    tracing::error!(message, "the start failed");
    begin_again()
}

fn exec(next: Restarts) -> std::io::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut arguments = env::args_os();
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
    fn the_process_begins_again_a_few_times_in_a_while() {
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
