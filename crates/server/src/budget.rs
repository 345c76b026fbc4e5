//! Memory that many clients may take together: each may want much, and many come at once.
//!
//! What does not fit is refused instead of waiting: requests that hold a part each and wait for the rest would wait for
//! each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidalite::{Error, ErrorKind, Result};

/// Clones share what there is.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    used: AtomicUsize,
    bytes_max: usize,
    /// Whose bytes they are, and the setting that limits them, for who is refused.
    whose: &'static str,
    setting: &'static str,
}

impl Budget {
    #[must_use]
    pub fn new(bytes_max: usize, whose: &'static str, setting: &'static str) -> Budget {
        Budget(Arc::new(Inner { used: AtomicUsize::new(0), bytes_max, whose, setting }))
    }

    /// The share of a new request, empty yet.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// Bytes that all hold now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Relaxed)
    }
}

/// What one request holds, until it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Share {
    /// # Errors
    /// When all together would have more than they may. Who is refused has to begin again, and gives back all it held:
    /// others go on at once.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        let bytes_max = self.budget.0.bytes_max;
        // Checked: a request may claim any number of bytes.
        let grown = |used: usize| used.checked_add(bytes).filter(|used| *used <= bytes_max);
        if self.budget.0.used.fetch_update(Relaxed, Relaxed, grown).is_ok() {
            self.bytes += bytes;
            return Ok(());
        }
        self.clear();
        let Inner { whose, setting, .. } = &*self.budget.0;
        let message =
            format!("{whose} together are larger than {bytes_max} bytes, the setting {setting}; send it again later");
        Err(Error::new(ErrorKind::Unavailable, message))
    }

    /// As [`Share::add`], of what is missing to so many.
    ///
    /// # Errors
    /// The same.
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes { self.add(bytes - self.bytes) } else { Ok(()) }
    }

    /// Gives all of it back.
    pub fn clear(&mut self) {
        self.budget.0.used.fetch_sub(self.bytes, Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_held_is_there_for_the_next() {
        let budget = Budget::new(100, "the bodies of all requests", "http.bodies_bytes_max");
        let mut first = budget.share();
        first.add(60).unwrap();
        assert_eq!(budget.used(), 60);
        let mut second = budget.share();
        second.add(40).unwrap();
        let refused = second.add(1).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unavailable);
        assert_eq!(
            refused.message,
            "the bodies of all requests together are larger than 100 bytes, the setting http.bodies_bytes_max; send it \
             again later"
        );
        assert_eq!(first.add(usize::MAX - 10).unwrap_err().kind, ErrorKind::Unavailable);
        first.add(60).unwrap();
        // The refused one holds nothing any more.
        first.add(40).unwrap();
        assert_eq!(second.add(1).unwrap_err().kind, ErrorKind::Unavailable);
        drop(first);
        second.add(100).unwrap();
        second.clear();
        budget.share().add(100).unwrap();
    }
}
