//! Operating system: file handles, signals that must not end the process, and the clock.

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
/// Segments get at most one in this many of the remaining handles.
const SEGMENT_PART: usize = 4;
/// Number of handles that is assumed for a process without a limit.
const UNLIMITED: usize = 1 << 20;
/// SIGXFSZ: sent when a file would exceed the size limit (`ulimit -f`); the write fails as well. The number is the same on
/// all supported platforms.
const FILE_SIZE: i32 = 25;

/// Division of the file handles of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handles {
    /// Segments kept open.
    pub segments: usize,
    /// Connections of all ports except the health port.
    pub connections: usize,
}

impl Handles {
    fn share(all: usize, segments_max: usize) -> Handles {
        let rest = all.saturating_sub(RESERVED);
        let segments = (rest / SEGMENT_PART).clamp(1, segments_max);
        Handles { segments, connections: rest.saturating_sub(segments).max(1) }
    }
}

/// Returns false before 1970: libraries panic with such a clock.
#[must_use]
pub fn has_sane_clock() -> bool {
    SystemTime::now() >= UNIX_EPOCH
}

/// Initializes hyper's cached `Date` header on this thread, while the clock is valid.
///
/// Workaround for hyper 1.12 (`common::date`): the first date of a thread panics if the clock is before 1970, later dates
/// do not. To try without: `tests/attacks/test_system.py`, the test of a clock before 1970.
pub fn begin_dates() {
    if !has_sane_clock() {
        return;
    }
    let connection = TokioIo::new(tokio::io::join(tokio::io::empty(), tokio::io::sink()));
    let service = service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let mut builder = http1::Builder::new();
    builder.header_read_timeout(None);
    // Ends immediately: the connection is empty.
    let _ = builder.serve_connection(connection, service).now_or_never();
}

/// Raises the limit of open files to the hard limit and divides the handles.
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

/// Handles SIGXFSZ, so that a write beyond `ulimit -f` fails instead of ending the process.
pub fn survive_large_files() -> Option<Signal> {
    signal(SignalKind::from_raw(FILE_SIZE)).inspect_err(|error| tracing::warn!(%error, "could not handle SIGXFSZ")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_of_handles() {
        for all in [64, 256, 1024, 20_000, UNLIMITED] {
            let Handles { segments, connections } = Handles::share(all, 512);
            assert!(segments >= 1 && connections >= 1 && segments <= 512);
            assert!(all < 2 * RESERVED || segments + connections + RESERVED <= all, "{all}");
        }
        assert_eq!(Handles::share(1024, 512), Handles { segments: 224, connections: 672 });
    }
}
