//! The total memory of open transactions.

use crate::{Error, ErrorKind, Result, SqlState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The total, shared by all transactions of a database.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Total>);

#[derive(Debug)]
struct Total {
    used: AtomicUsize,
    max: usize,
}

/// Memory reservation of one transaction; released on drop.
#[derive(Debug)]
pub(super) struct Held {
    total: Arc<Total>,
    bytes: usize,
}

impl Memory {
    pub(crate) fn new(bytes_max: usize) -> Memory {
        Memory(Arc::new(Total { used: AtomicUsize::new(0), max: bytes_max }))
    }

    pub(super) fn hold(&self) -> Held {
        Held { total: self.0.clone(), bytes: 0 }
    }
}

impl Held {
    /// Returns an empty reservation with the same total.
    pub fn empty(&self) -> Held {
        Held { total: self.total.clone(), bytes: 0 }
    }

    /// Sets the size of the reservation, in bytes.
    ///
    /// # Errors
    /// The total of all transactions would exceed the limit; the reservation keeps its size.
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            let more = bytes - self.bytes;
            let max = self.total.max;
            let add = |used: usize| used.checked_add(more).filter(|used| *used <= max);
            if self.total.used.fetch_update(Relaxed, Relaxed, add).is_err() {
                let message = format!("out of memory: open transactions may take {} MiB together", max >> 20);
                let error = Error::new(ErrorKind::Unavailable, message).with_code(SqlState::OUT_OF_MEMORY);
                return Err(error.with_hint("transaction.bytes_max sets the limit"));
            }
        } else {
            self.total.used.fetch_sub(self.bytes - bytes, Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_transactions_share_one_limit() {
        let memory = Memory::new(100);
        let (mut a, mut b) = (memory.hold(), memory.hold());
        a.set(60).unwrap();
        assert_eq!(b.set(41).unwrap_err().code, Some(SqlState::OUT_OF_MEMORY));
        b.set(40).unwrap();
        a.set(10).unwrap();
        b.set(90).unwrap();
        drop(b);
        a.set(100).unwrap();
    }
}
