//! Counts of bytes: of the process, and of statements.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::Relaxed};

/// A thread passes its count on when it differs by this many bytes, so that most allocations touch no shared memory.
const STEP_BYTES: isize = 64 << 10;

/// The value of [`PENDING`] before the thread's first allocation and after its end.
const UNREGISTERED: isize = isize::MIN;

/// Live bytes of the process.
static USED: AtomicIsize = AtomicIsize::new(0);
/// Sum of the trackers' bytes.
static TRACKED: AtomicIsize = AtomicIsize::new(0);
/// True after the first counted allocation.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Bytes that this thread has not passed on yet, or [`UNREGISTERED`]. The type has no destructor: the allocator may
    /// use it at any time.
    static PENDING: Cell<isize> = const { Cell::new(UNREGISTERED) };
    /// The tracker of the innermost scope, or null.
    static CURRENT: Cell<*const Tracker> = const { Cell::new(ptr::null()) };
}

/// Returns the live bytes of the process; 0 if the allocator does not count.
#[must_use]
pub fn used() -> usize {
    USED.load(Relaxed).max(0) as usize
}

/// Returns the bytes of all trackers together.
#[must_use]
pub fn tracked() -> usize {
    TRACKED.load(Relaxed).max(0) as usize
}

/// Returns true if the process's allocator counts.
#[must_use]
pub fn is_counting() -> bool {
    IS_COUNTING.load(Relaxed)
}

/// Counts `bytes` more for this thread.
#[inline]
pub(crate) fn count(bytes: isize) {
    // An unregistered thread is far below the range.
    let pending = PENDING.get().wrapping_add(bytes);
    if (-STEP_BYTES..STEP_BYTES).contains(&pending) {
        PENDING.set(pending);
    } else {
        leave_range(bytes);
    }
}

/// Registers the thread, or passes its count on.
#[cold]
fn leave_range(bytes: isize) {
    let pending = match PENDING.get() {
        UNREGISTERED => {
            thread_end::flush_at_end();
            bytes
        }
        pending => pending.wrapping_add(bytes),
    };
    PENDING.set(0);
    pass_on(pending);
}

/// Passes on the count of a thread before the thread ends.
///
/// Thread-local destructors of the standard library may allocate when they are registered, which an allocator must not
/// do. A key of POSIX threads does not.
#[cfg(unix)]
mod thread_end {
    use super::{PENDING, UNREGISTERED, flush};
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The key plus 1; 0 before the first thread.
    static KEY: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn flush_at_end() {
        if let Some(key) = key() {
            // SAFETY: the key exists for the life of the process. The value only has to differ from null.
            unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<c_void>()) };
        }
    }

    fn key() -> Option<libc::pthread_key_t> {
        let known = KEY.load(Ordering::Acquire);
        if known > 0 {
            return Some((known - 1) as libc::pthread_key_t);
        }
        let mut key = 0;
        // SAFETY: `key` is valid for a write, and the destructor does not unwind.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } != 0 {
            return None;
        }
        match KEY.compare_exchange(0, key as usize + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Some(key),
            Err(first) => {
                // SAFETY: no thread has used this key.
                unsafe { libc::pthread_key_delete(key) };
                Some((first - 1) as libc::pthread_key_t)
            }
        }
    }

    /// Later destructors of the thread may allocate and free: the thread then registers again.
    extern "C" fn end(_: *mut c_void) {
        flush();
        PENDING.set(UNREGISTERED);
    }
}

#[cfg(not(unix))]
mod thread_end {
    pub(super) fn flush_at_end() {}
}

#[cold]
fn pass_on(bytes: isize) {
    if !IS_COUNTING.load(Relaxed) {
        IS_COUNTING.store(true, Relaxed);
    }
    USED.fetch_add(bytes, Relaxed);
    let tracker = CURRENT.get();
    if !tracker.is_null() {
        // SAFETY: `Tracker::count` sets the pointer from a reference that outlives the call, and restores the previous
        // pointer when it ends, also by a panic. The call stays on its thread.
        unsafe { &*tracker }.add(bytes);
    }
}

fn flush() {
    let pending = PENDING.get();
    if pending != UNREGISTERED && pending != 0 {
        PENDING.set(0);
        pass_on(pending);
    }
}

/// Moves `bytes` from the tracker of the current scope to the process's own count, or back if negative.
///
/// Memory that outlives a statement, such as a cached block, is not part of that statement.
pub fn reassign(bytes: isize) {
    let tracker = CURRENT.get();
    if !tracker.is_null() {
        // SAFETY: as in `pass_on`.
        unsafe { &*tracker }.add(-bytes);
    }
}

/// The live bytes that the work of one statement allocated.
///
/// The count can differ by memory that other threads freed, and by 64 KiB for each thread within a scope. It can be
/// negative.
#[derive(Debug)]
pub struct Tracker {
    used: AtomicIsize,
    peak: AtomicIsize,
    limit: AtomicUsize,
    is_exceeded: AtomicBool,
}

impl Default for Tracker {
    fn default() -> Tracker {
        Tracker {
            used: AtomicIsize::new(0),
            peak: AtomicIsize::new(0),
            limit: AtomicUsize::new(isize::MAX as usize),
            is_exceeded: AtomicBool::new(false),
        }
    }
}

impl Tracker {
    /// Sets the number of bytes above which the tracker is exceeded.
    pub fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes.min(isize::MAX as usize), Relaxed);
    }

    /// Returns the live bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Relaxed).max(0) as usize
    }

    /// Returns the largest number of live bytes so far.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed).max(0) as usize
    }

    /// Returns true once the bytes were above the limit.
    #[must_use]
    #[inline]
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Relaxed)
    }

    /// Runs `work`, whose allocations on this thread count for the tracker.
    pub fn count<T>(&self, work: impl FnOnce() -> T) -> T {
        flush();
        // Dropped at a panic, too. The guard never leaves this function: a forgotten guard would leave a dangling pointer.
        let _scope = Scope { outer: CURRENT.replace(self) };
        work()
    }

    /// Removes `bytes` that now belong to another owner.
    pub fn release(&self, bytes: usize) {
        self.add(-(bytes.min(isize::MAX as usize) as isize));
    }

    fn add(&self, bytes: isize) {
        TRACKED.fetch_add(bytes, Relaxed);
        let used = self.used.fetch_add(bytes, Relaxed) + bytes;
        if bytes > 0 {
            self.peak.fetch_max(used, Relaxed);
            if used > self.limit.load(Relaxed) as isize {
                self.is_exceeded.store(true, Relaxed);
            }
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        TRACKED.fetch_sub(*self.used.get_mut(), Relaxed);
    }
}

/// Restores the tracker of the outer scope.
struct Scope {
    outer: *const Tracker,
}

impl Drop for Scope {
    fn drop(&mut self) {
        flush();
        CURRENT.set(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_counts_for_its_tracker_only() {
        let (outer, inner) = (Tracker::default(), Tracker::default());
        outer.set_limit(500_000);
        outer.count(|| {
            count(300_000);
            inner.count(|| {
                count(200_000);
                count(-50_000);
            });
            count(1_000);
        });
        count(700_000);
        assert_eq!((outer.used(), inner.used(), inner.peak()), (301_000, 150_000, 200_000));
        assert!(!outer.is_exceeded());
        outer.count(|| {
            count(200_000);
            assert!(outer.is_exceeded());
            reassign(400_000);
        });
        outer.release(1_000_000);
        assert_eq!((outer.used(), outer.peak()), (0, 501_000));
        assert!(used() >= 1_000_000);
    }

    #[test]
    fn a_panic_ends_the_scope() {
        let (outer, inner) = (Tracker::default(), Tracker::default());
        outer.count(|| {
            let panicked = std::panic::catch_unwind(|| {
                inner.count(|| {
                    count(100_000);
                    std::panic::resume_unwind(Box::new(()));
                });
            });
            assert!(panicked.is_err());
            count(200_000);
        });
        assert_eq!((outer.used(), inner.used()), (200_000, 100_000));
    }

    #[test]
    fn the_count_of_a_thread_survives_its_end() {
        // Other tests count at the same time, but less.
        let before = used();
        for _ in 0..200 {
            let counted = std::thread::spawn(|| count(60_000)).join();
            assert!(counted.is_ok());
        }
        assert!(used() - before >= 11_000_000, "{}", used() - before);
    }

    #[test]
    fn memory_freed_by_another_statement_does_not_wrap() {
        let (owner, other) = (Tracker::default(), Tracker::default());
        owner.count(|| count(100_000));
        other.count(|| count(-100_000));
        assert_eq!((owner.used(), other.used(), other.peak()), (100_000, 0, 0));
    }
}
