//! A bounded queue of log lines between the threads that log and the one thread that writes.
//!
//! Invariants: [`LogQueue::push`] never blocks and never fails; memory is at most `LINES_MAX` × `LINE_BYTES_MAX`
//! (8 MiB); each line is either written whole or counted in [`LogQueue::lines_dropped`].

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Lines that wait for the stream.
const LINES_MAX: usize = 2048;

/// Bytes of a line; the rest of a longer line is cut off, so that a client cannot fill the log with one name.
const LINE_BYTES_MAX: usize = 4096;

/// Stands where a line was cut.
const CUT: &str = "…\n";

/// The sending side; shared by all threads.
pub struct LogQueue {
    sender: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

enum Entry {
    Line(Vec<u8>),
    /// Answered when all entries before it are written or dropped.
    Flush(std::sync::mpsc::Sender<()>),
}

impl LogQueue {
    /// Starts the thread that writes to `stream`.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn new(stream: impl Write + Send + 'static) -> io::Result<LogQueue> {
        let (sender, receiver) = sync_channel(LINES_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let counter = dropped.clone();
        std::thread::Builder::new()
            .name("log-lines".to_owned())
            .spawn(move || write_lines(&receiver, stream, &counter))?;
        Ok(LogQueue { sender, dropped })
    }

    /// Queues one line; a full queue drops the line and counts it.
    pub fn push(&self, line: &[u8]) {
        if self.sender.try_send(Entry::Line(shortened(line))).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Waits until the lines queued so far have been written or dropped, at most `timeout`.
    pub fn flush(&self, timeout: Duration) {
        let (sender, receiver) = channel();
        if self.sender.try_send(Entry::Flush(sender)).is_ok() {
            let _ = receiver.recv_timeout(timeout);
        }
    }

    /// Number of lines that the queue or the stream did not take.
    #[must_use]
    pub fn lines_dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

impl Write for &LogQueue {
    /// Takes one whole line per call, as `tracing_subscriber` writes them.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shortened(line: &[u8]) -> Vec<u8> {
    if line.len() <= LINE_BYTES_MAX {
        return line.to_vec();
    }
    let mut end = LINE_BYTES_MAX - CUT.len();
    // Not within a character of several bytes.
    while end > 0 && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    [&line[..end], CUT.as_bytes()].concat()
}

/// Writes lines until the queue is gone. After dropped lines, the next line that the stream takes is followed by a
/// line with their number.
fn write_lines(receiver: &Receiver<Entry>, mut stream: impl Write, dropped: &AtomicU64) {
    let mut reported = 0;
    while let Ok(entry) = receiver.recv() {
        match entry {
            Entry::Line(line) => {
                if stream.write_all(&line).is_err() {
                    dropped.fetch_add(1, Relaxed);
                    continue;
                }
                let lines = dropped.load(Relaxed);
                if lines > reported {
                    tracing::warn!(lines = lines - reported, "dropped log lines that standard error did not take");
                    reported = lines;
                }
            }
            // The caller may have stopped waiting.
            Entry::Flush(sender) => {
                let _ = sender.send(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// A stream that takes nothing until it is opened, then keeps what it is given, or fails.
    #[derive(Clone, Default)]
    struct Gate(Arc<(Mutex<State>, Condvar)>);

    #[derive(Default)]
    struct State {
        is_open: bool,
        fails: bool,
        written: Vec<u8>,
    }

    impl Gate {
        fn change(&self, change: impl FnOnce(&mut State)) {
            change(&mut self.0.0.lock().unwrap());
            self.0.1.notify_all();
        }
        fn lines(&self) -> Vec<String> {
            String::from_utf8(self.0.0.lock().unwrap().written.clone()).unwrap().lines().map(str::to_owned).collect()
        }
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.1.wait_while(self.0.0.lock().unwrap(), |s| !s.is_open && !s.fails).unwrap();
            if state.fails {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            state.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn full_queue_drops_and_counts() {
        let gate = Gate::default();
        let queue = LogQueue::new(gate.clone()).unwrap();
        let total = LINES_MAX as u64 + 100;
        (0..total).for_each(|n| queue.push(format!("line {n}\n").as_bytes()));
        let dropped = queue.lines_dropped();
        // The writer may hold one line besides those in the queue.
        assert!((99..=100).contains(&dropped), "{dropped}");
        gate.change(|s| s.is_open = true);
        while gate.lines().len() as u64 + dropped < total {
            queue.flush(LONG);
        }
        assert_eq!(gate.lines()[..3], ["line 0", "line 1", "line 2"]);
        assert_eq!(queue.lines_dropped(), dropped);
    }

    #[test]
    fn failing_stream_drops_and_counts_until_it_works() {
        let gate = Gate::default();
        gate.change(|s| s.fails = true);
        let queue = LogQueue::new(gate.clone()).unwrap();
        (0..10).for_each(|_| queue.push(b"lost\n"));
        queue.flush(LONG);
        assert_eq!(queue.lines_dropped(), 10);
        gate.change(|s| (s.fails, s.is_open) = (false, true));
        queue.push(b"kept\n");
        queue.flush(LONG);
        assert_eq!(gate.lines(), ["kept"]);
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let gate = Gate::default();
        gate.change(|s| s.is_open = true);
        let queue = LogQueue::new(gate.clone()).unwrap();
        queue.push(format!("{}\n", "ü".repeat(5000)).as_bytes());
        queue.flush(LONG);
        let line = gate.lines().remove(0);
        assert!(line.ends_with("ü…") && line.len() < LINE_BYTES_MAX, "{} bytes", line.len());
    }
}
