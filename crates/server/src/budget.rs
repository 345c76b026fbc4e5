//! Memory limit that concurrent clients share.
//!
//! A request that does not fit is refused, not queued: requests that each hold a part and wait for the rest would
//! deadlock. Shares of clients that send too slowly are revoked first, and those clients are refused instead.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tidalite::{Error, ErrorKind, Result, SqlState};
use tokio::sync::Notify;

/// Shares below this many bytes are never revoked.
const SMALL_BYTES: usize = 64 << 10;
/// A share may be revoked if the client sends fewer than [`SMALL_BYTES`] in this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// A memory limit; clones share the limit.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    used: AtomicUsize,
    bytes_max: usize,
    /// The subject of refusals, and the setting of the limit.
    whose: &'static str,
    setting: &'static str,
    started: Instant,
    /// Shares that reached [`SMALL_BYTES`].
    holders: Mutex<Vec<Weak<Holder>>>,
    gave_way: AtomicU64,
}

/// The state of a share that other requests can revoke.
#[derive(Debug, Default)]
struct Holder {
    bytes: AtomicUsize,
    /// The request waits for its client; only then the share may be revoked.
    is_awaited: AtomicBool,
    /// Time of the last progress in milliseconds since `Inner::started`, and the bytes held at that time.
    progress: (AtomicU64, AtomicUsize),
    is_revoked: AtomicBool,
    revoked: Notify,
}

impl Budget {
    #[must_use]
    pub fn new(bytes_max: usize, whose: &'static str, setting: &'static str) -> Budget {
        Budget(Arc::new(Inner {
            used: AtomicUsize::new(0),
            bytes_max,
            whose,
            setting,
            started: Instant::now(),
            holders: Mutex::default(),
            gave_way: AtomicU64::new(0),
        }))
    }

    /// Returns an empty share for a new request.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), holder: Arc::default(), is_listed: false }
    }

    /// Returns the bytes of all shares.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Relaxed)
    }

    /// Returns the number of revoked shares.
    #[must_use]
    pub fn gave_way(&self) -> u64 {
        self.0.gave_way.load(Relaxed)
    }

    fn now(&self) -> u64 {
        self.0.started.elapsed().as_millis() as u64
    }

    /// Reserves bytes if they fit. The addition is checked: a request may claim any number.
    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.0.bytes_max);
        self.0.used.fetch_update(Relaxed, Relaxed, fits).is_ok()
    }

    /// Revokes shares of slow clients, largest first, until `bytes` more fit.
    fn revoke_slow(&self, bytes: usize, now: u64) {
        let Inner { used, bytes_max, holders, gave_way, .. } = &*self.0;
        let Some(limit) = bytes_max.checked_sub(bytes) else { return };
        let mut slow: Vec<Arc<Holder>> = {
            let mut holders = holders.lock().unwrap_or_else(PoisonError::into_inner);
            holders.retain(|holder| holder.strong_count() > 0);
            holders.iter().filter_map(Weak::upgrade).filter(|holder| holder.is_slow(now)).collect()
        };
        slow.sort_by_key(|holder| std::cmp::Reverse(holder.bytes.load(Relaxed)));
        for holder in slow {
            if used.load(Relaxed) <= limit {
                return;
            }
            holder.is_revoked.store(true, Relaxed);
            used.fetch_sub(holder.bytes.swap(0, Relaxed), Relaxed);
            gave_way.fetch_add(1, Relaxed);
            holder.revoked.notify_one();
        }
    }

    /// Revokes shares as if a time had passed.
    #[cfg(test)]
    pub fn revoke_after(&self, bytes: usize, time: Duration) {
        self.revoke_slow(bytes, self.now() + time.as_millis() as u64);
    }

    fn refusal(&self) -> Error {
        let Inner { bytes_max, whose, setting, .. } = &*self.0;
        let message =
            format!("{whose} together are larger than {bytes_max} bytes, the setting {setting}; send it again later");
        Error::new(ErrorKind::Unavailable, message).with_code(SqlState::OUT_OF_MEMORY)
    }
}

impl Holder {
    fn is_slow(&self, now: u64) -> bool {
        let waited = now.saturating_sub(self.progress.0.load(Relaxed));
        let is_small = self.bytes.load(Relaxed) < SMALL_BYTES;
        !is_small && self.is_awaited.load(Relaxed) && u128::from(waited) >= PATIENCE.as_millis()
    }

    fn note_progress(&self, now: u64) {
        let bytes = self.bytes.load(Relaxed);
        if bytes >= self.progress.1.load(Relaxed) + SMALL_BYTES {
            self.progress.0.store(now, Relaxed);
            self.progress.1.store(bytes, Relaxed);
        }
    }
}

/// The memory of one request; released on drop.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    holder: Arc<Holder>,
    /// The holder is in [`Inner::holders`].
    is_listed: bool,
}

impl Share {
    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// The limit would be exceeded, or the share was revoked. The share is empty afterwards: the request must start again.
    pub fn add(&mut self, bytes: usize) -> Result<()> {
        if self.holder.is_revoked.load(Relaxed) {
            return Err(self.budget.refusal());
        }
        let budget = self.budget.clone();
        if !budget.take(bytes) {
            budget.revoke_slow(bytes, budget.now());
            if !budget.take(bytes) {
                self.clear();
                return Err(budget.refusal());
            }
        }
        let held = self.holder.bytes.fetch_add(bytes, Relaxed) + bytes;
        if held >= SMALL_BYTES {
            self.list();
            self.holder.note_progress(budget.now());
        }
        Ok(())
    }

    fn list(&mut self) {
        if !self.is_listed {
            self.is_listed = true;
            let holder = Arc::downgrade(&self.holder);
            self.budget.0.holders.lock().unwrap_or_else(PoisonError::into_inner).push(holder);
        }
    }

    /// Grows the share to `bytes` in total, as [`Share::add`].
    ///
    /// # Errors
    /// The same.
    pub fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let held = self.holder.bytes.load(Relaxed);
        if bytes > held { self.add(bytes - held) } else { Ok(()) }
    }

    /// Grows or shrinks the share to `bytes`: the request has made progress.
    ///
    /// # Errors
    /// As [`Share::add`].
    pub fn set(&mut self, bytes: usize) -> Result<()> {
        let held = self.holder.bytes.load(Relaxed);
        if held <= bytes {
            self.add(bytes - held)?;
        } else if self.holder.bytes.compare_exchange(held, bytes, Relaxed, Relaxed).is_ok() {
            self.budget.0.used.fetch_sub(held - bytes, Relaxed);
        }
        self.holder.progress.0.store(self.budget.now(), Relaxed);
        Ok(())
    }

    /// Releases all bytes of the share.
    pub fn clear(&mut self) {
        self.budget.0.used.fetch_sub(self.holder.bytes.swap(0, Relaxed), Relaxed);
        self.holder.progress.1.store(0, Relaxed);
    }

    /// Returns the handle with which the request waits for its client.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(self.holder.clone())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.clear();
        if self.is_listed {
            let ours = Arc::as_ptr(&self.holder);
            let mut holders = self.budget.0.holders.lock().unwrap_or_else(PoisonError::into_inner);
            holders.retain(|holder| holder.as_ptr() != ours);
        }
    }
}

/// Waits for a client unless the share is revoked.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Holder>);

impl Watch {
    /// Waits for `next`; `None` if the share is revoked in the meantime.
    pub async fn unless_revoked<T>(&self, next: impl Future<Output = T>) -> Option<T> {
        let _awaiting = Awaiting::new(&self.0.is_awaited);
        tokio::select! {
            biased;
            next = next => Some(next),
            () = self.0.revoked.notified() => None,
        }
    }
}

/// Guard that resets `Holder::is_awaited` when the future is dropped.
struct Awaiting<'a>(&'a AtomicBool);

impl<'a> Awaiting<'a> {
    fn new(is_awaited: &'a AtomicBool) -> Awaiting<'a> {
        is_awaited.store(true, Relaxed);
        Awaiting(is_awaited)
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        self.0.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn released_bytes_are_available() {
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
        // The refused share is empty.
        first.add(40).unwrap();
        assert_eq!(second.add(1).unwrap_err().kind, ErrorKind::Unavailable);
        drop(first);
        second.add(100).unwrap();
        second.clear();
        budget.share().add(100).unwrap();
    }

    #[test]
    fn revocation_of_slow_shares() {
        let budget = Budget::new(10 * SMALL_BYTES, "the bodies of all requests", "http.bodies_bytes_max");
        let [mut stalled, mut slow, mut busy] = [(); 3].map(|()| budget.share());
        let watches = [stalled.watch(), slow.watch()];
        stalled.add(6 * SMALL_BYTES).unwrap();
        slow.add(2 * SMALL_BYTES).unwrap();
        busy.add(2 * SMALL_BYTES).unwrap();
        let mut waiting: Vec<_> =
            watches.iter().map(|watch| Box::pin(watch.unless_revoked(std::future::pending::<()>()))).collect();
        assert!(waiting.iter_mut().all(|waiting| waiting.as_mut().now_or_never().is_none()));
        // No share is slow yet.
        assert!(budget.share().add(1).is_err());
        for holder in [&stalled.holder, &slow.holder] {
            assert!(!holder.is_slow(0) && holder.is_slow(PATIENCE.as_millis() as u64 * 2));
        }
        budget.revoke_slow(1, PATIENCE.as_millis() as u64 * 2);
        assert_eq!((budget.used(), budget.gave_way()), (4 * SMALL_BYTES, 1));
        assert_eq!(waiting[0].as_mut().now_or_never(), Some(None));
        assert!(waiting[1].as_mut().now_or_never().is_none());
        assert!(stalled.add(1).is_err() && slow.add(1).is_ok());
        drop((stalled, slow, busy));
        assert_eq!((budget.used(), budget.0.holders.lock().unwrap().len()), (0, 0));
    }
}
