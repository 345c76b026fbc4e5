//! The memory that the bodies of all requests may take together: each may be large, and many come at once.
//!
//! What does not fit is refused instead of waiting: requests that hold a part each and wait for the rest would wait for
//! each other.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidalite::{Error, ErrorKind, Result};

#[derive(Debug)]
pub struct Budget {
    used: AtomicUsize,
    bytes_max: usize,
}

impl Budget {
    #[must_use]
    pub fn new(bytes_max: usize) -> Budget {
        Budget { used: AtomicUsize::new(0), bytes_max }
    }

    /// The share of a new request, empty yet.
    pub fn share(&self) -> Share<'_> {
        Share { budget: self, bytes: 0 }
    }
}

/// What one request holds, until it is dropped.
#[derive(Debug)]
pub struct Share<'a> {
    budget: &'a Budget,
    bytes: usize,
}

impl Share<'_> {
    /// # Errors
    /// When all requests together would have more than they may.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.budget.used.fetch_add(bytes, Relaxed) + bytes <= self.budget.bytes_max {
            return Ok(());
        }
        let message = format!(
            "the bodies of all requests together are larger than {} bytes, the setting http.bodies_bytes_max; \
             send it again later",
            self.budget.bytes_max
        );
        Err(Error::new(ErrorKind::Unavailable, message))
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_held_is_there_for_the_next() {
        let budget = Budget::new(100);
        let mut first = budget.share();
        first.add(60).unwrap();
        let mut second = budget.share();
        second.add(40).unwrap();
        assert_eq!(second.add(1).unwrap_err().kind, ErrorKind::Unavailable);
        drop(second);
        assert_eq!(first.add(41).unwrap_err().kind, ErrorKind::Unavailable);
        drop(first);
        budget.share().add(100).unwrap();
    }
}
