//! Threads that nothing waits for, and threads that share one piece of work.
//!
//! glibc before 2.41 may access the freed stack of a thread that ends while another thread detaches it, which is what
//! dropping a `JoinHandle` does (<https://sourceware.org/bugzilla/show_bug.cgi?id=19951>). Threads are therefore joined,
//! or detached before their work begins.

use std::io;
use std::sync::mpsc;
use std::thread::{self, Builder};

/// Starts a thread that nothing waits for.
///
/// # Errors
/// The operating system cannot create a thread.
pub fn spawn_detached(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (begin, begun) = mpsc::channel::<()>();
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        // The sender is dropped after the handle.
        let _ = begun.recv();
        work();
    })?;
    drop(thread);
    drop(begin);
    Ok(())
}

/// Runs `work` on `count` threads, including this one.
///
/// # Panics
/// Panics if one of the threads panicked.
pub(crate) fn on_threads(count: usize, work: &(dyn Fn() + Sync)) {
    thread::scope(|scope| {
        let others: Vec<_> = (1..count).map(|_| scope.spawn(work)).collect();
        work();
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn a_detached_thread_does_its_work() {
        let (sender, receiver) = mpsc::channel();
        spawn_detached("test", move || {
            let name = thread::current().name().map(str::to_owned);
            // The receiver waits for this.
            let _ = sender.send(name);
        })
        .expect("a thread");
        assert_eq!(receiver.recv().expect("the thread sends").as_deref(), Some("test"));
    }

    #[test]
    fn all_threads_work_and_panics_arrive() {
        let count = AtomicUsize::new(0);
        on_threads(4, &|| {
            count.fetch_add(1, SeqCst);
        });
        assert_eq!(count.load(SeqCst), 4);
        let calls = AtomicUsize::new(0);
        let fails = || on_threads(3, &|| assert!(calls.fetch_add(1, SeqCst) < 2, "the third call fails"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(fails)).is_err());
    }
}
