//! The threads that connections of lines are served on: apart from those of requests that somebody waits for, and giving
//! way to them.
//!
//! Nobody waits for an answer to lines over TCP, and whoever sends many of them keeps every thread busy that it is
//! given: a request of a thousand rows over HTTP would wait for its turn.

use std::future::Future;
use std::io;
use tidalite::ask_for_long_turns;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// A third of the share of a thread of normal priority, when all want to run: lines must keep coming while queries keep
/// all processors busy.
const NICENESS: i32 = 5;

#[derive(Debug)]
pub struct LineThreads(Option<Runtime>);

impl LineThreads {
    /// Starts them.
    pub fn start() -> io::Result<LineThreads> {
        let runtime = Builder::new_multi_thread()
            .thread_name("lines")
            .enable_all()
            .on_thread_start(|| {
                // Refused only where priorities do not exist: then all are served alike.
                let _ = rustix::process::nice(NICENESS);
                ask_for_long_turns();
            })
            .build()?;
        Ok(LineThreads(Some(runtime)))
    }

    /// Serves a port with them that was bound elsewhere.
    pub fn serve<F>(&self, listener: TcpListener, serve: impl FnOnce(TcpListener) -> F) -> io::Result<JoinHandle<()>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let runtime = self.0.as_ref().ok_or_else(|| io::Error::other("the server stops"))?;
        let listener = listener.into_std()?;
        let _context = runtime.enter();
        Ok(runtime.spawn(serve(TcpListener::from_std(listener)?)))
    }
}

impl Drop for LineThreads {
    fn drop(&mut self) {
        // Whoever drops it may be a task of another runtime, which must not wait.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}
