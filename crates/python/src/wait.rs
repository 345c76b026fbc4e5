//! Waiting for the database without the interpreter's lock, and for Ctrl-C with it.

use futures::future::BoxFuture;
use pyo3::prelude::*;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// Signals are looked at this often.
const TICK: Duration = Duration::from_millis(50);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until `poll` is ready. An error is what a signal's handler raised, as KeyboardInterrupt.
pub fn until<T: Send>(py: Python<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T> + Send) -> PyResult<T> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        let polled = py.detach(|| {
            let mut context = Context::from_waker(&waker);
            let first = poll(&mut context);
            if first.is_ready() {
                return first;
            }
            std::thread::park_timeout(TICK);
            poll(&mut context)
        });
        if let Poll::Ready(value) = polled {
            return Ok(value);
        }
        py.check_signals()?;
    }
}

/// Waits for a future; a signal drops it, which stops what it stands for.
pub fn wait<T: Send>(py: Python<'_>, mut future: BoxFuture<'static, T>) -> PyResult<T> {
    until(py, |context| future.as_mut().poll(context))
}
