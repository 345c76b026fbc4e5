//! What the process asks of the operating system: file handles, signals that must not end it, and the time.

use futures::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::convert::Infallible;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Handles for the log, the manifest, merges, spilled rows, the ports themselves, their reserves, and health.
const RESERVED: usize = 128;
/// Segments have this part of the others at most.
const SEGMENT_PART: usize = 4;
/// Of a process without a limit.
const UNLIMITED: usize = 1 << 20;
/// Sent to a process whose file would grow beyond the limit for files (`ulimit -f`); the write fails then. The number is
/// the same on all systems that we build for.
const FILE_SIZE: i32 = 25;

/// How the file handles of the process are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handles {
    /// Segments that are kept open.
    pub segments: usize,
    /// Connections of all ports, besides those to the port of health.
    pub connections: usize,
}

impl Handles {
    fn share(all: usize, segments_max: usize) -> Handles {
        let rest = all.saturating_sub(RESERVED);
        let segments = (rest / SEGMENT_PART).clamp(1, segments_max);
        Handles { segments, connections: rest.saturating_sub(segments).max(1) }
    }
}

/// Returns false before 1970, of which libraries make a panic.
#[must_use]
pub fn has_sane_clock() -> bool {
    SystemTime::now() >= UNIX_EPOCH
}

/// Has hyper find out the date on this thread. It keeps one for each thread, for the header `Date`, and a clock before 1970
/// makes a panic of the first (hyper 1.12, `common::date`), none of later ones.
pub fn begin_dates() {
    if !has_sane_clock() {
        return;
    }
    let nobody = TokioIo::new(tokio::io::join(tokio::io::empty(), tokio::io::sink()));
    let service = service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    // Ends at once: nothing is sent.
    let _ = builder.serve_connection(nobody, service).now_or_never();
}

/// Raises the limit of open files as far as the process may, and shares them.
#[must_use]
pub fn open_files(segments_max: usize) -> Handles {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let is_raised = current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if is_raised { maximum } else { current };
    let all = limit.map_or(UNLIMITED, |limit| usize::try_from(limit).unwrap_or(UNLIMITED));
    let handles = Handles::share(all, segments_max);
    tracing::info!(
        open_files = all,
        is_raised,
        segments = handles.segments,
        connections = handles.connections,
        "limits of file handles"
    );
    handles
}

/// A write that would make a file too large is an error of that write from now on, not the end of the process.
pub fn survive_large_files() -> Option<Signal> {
    signal(SignalKind::from_raw(FILE_SIZE)).inspect_err(|error| tracing::warn!(%error, "could not handle SIGXFSZ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_suffice_for_all_who_have_some() {
        for all in [64, 256, 1024, 20_000, UNLIMITED] {
            let Handles { segments, connections } = Handles::share(all, 512);
            assert!(segments >= 1 && connections >= 1 && segments <= 512);
            assert!(all < 2 * RESERVED || segments + connections + RESERVED <= all, "{all}");
        }
        assert_eq!(Handles::share(1024, 512), Handles { segments: 224, connections: 672 });
    }
}
