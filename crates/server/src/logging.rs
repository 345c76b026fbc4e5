//! Log lines, structured, to standard error.
//!
//! A log statement never waits for standard error and never fails: lines go through [`queue`], which drops and counts
//! what the stream does not take.

mod queue;
mod throttle;

use crate::config::LogFormat;
use queue::LogQueue;
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::time::Duration;
pub use throttle::{LineThrottle, cut};
use tracing_subscriber::EnvFilter;

/// The process's queue, made by [`start`].
static QUEUE: OnceLock<LogQueue> = OnceLock::new();

/// A stopping process waits this long for its last lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Sends the process's log lines and panics to standard error. Called once; `level` was checked by the settings.
pub fn start(level: &str, format: LogFormat) {
    let Ok(queue) = LogQueue::new(std::io::stderr()) else {
        // No thread could be started; the server reports the same failure when it starts its own.
        return;
    };
    let queue = QUEUE.get_or_init(|| queue);
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || queue);
    let result = match format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    // Only fails when a subscriber exists already, as in tests.
    let _ = result;
    std::panic::set_hook(Box::new(log_panic));
}

/// Waits until the lines logged so far are written, at most half a second.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

/// Number of log lines that were dropped since the start of the process.
#[must_use]
pub fn lines_dropped() -> u64 {
    QUEUE.get().map_or(0, LogQueue::lines_dropped)
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let location = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let message = info.payload_as_str().unwrap_or("unknown payload");
    let backtrace = std::backtrace::Backtrace::capture();
    tracing::error!(thread = thread.name().unwrap_or("unnamed"), location, message, %backtrace, "a thread panicked");
}
