//! The resident size of the process: live bytes, freed pages that the allocator keeps, and fragmentation.

use crate::limit::budget;
use crate::tracker::used;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Soft limit in percent of the budget: above it freed pages return to the system and the overhead counts as used.
const SOFT_PERCENT: usize = 90;
/// Hard limit in percent of the budget: above it the process is over its budget even if the live bytes are not.
const HARD_PERCENT: usize = 115;

/// Resident bytes beyond the live bytes while the resident size is above the soft limit, else 0.
static OVERHEAD: AtomicUsize = AtomicUsize::new(0);
/// Resident bytes above the hard limit, else 0.
static EXCESS: AtomicUsize = AtomicUsize::new(0);

/// Returns the resident bytes beyond the live bytes that [`has_room`](crate::has_room) counts as used.
pub(crate) fn overhead() -> usize {
    OVERHEAD.load(Relaxed)
}

/// Returns the resident bytes above the hard limit at the last check.
pub(crate) fn excess() -> usize {
    EXCESS.load(Relaxed)
}

/// Compares the resident size of the process with the budget.
///
/// Above 90 % of the budget, `purge` returns freed pages to the system if they may be more than a sixteenth of it. If the
/// resident size is still above 90 %, its difference to the live bytes counts as used until the next call: operators
/// spill earlier and caches shrink. Above 115 % the largest statement is stopped, as if the live bytes were above the
/// budget. `resident` returns the resident bytes.
pub fn check_resident(resident: impl Fn() -> usize, purge: impl FnOnce()) {
    let percent = |percent: usize| (budget() / 100).saturating_mul(percent);
    let mut size = resident();
    if size > percent(SOFT_PERCENT) && size.saturating_sub(used()) > budget() / 16 {
        purge();
        size = resident();
    }
    let overhead = if size > percent(SOFT_PERCENT) { size.saturating_sub(used()) } else { 0 };
    OVERHEAD.store(overhead, Relaxed);
    EXCESS.store(size.saturating_sub(percent(HARD_PERCENT)), Relaxed);
}

/// Returns the bytes of anonymous memory of the process that are resident; 0 where the system has no `/proc`.
#[must_use]
pub fn resident_bytes() -> usize {
    // SAFETY: `sysconf` reads a constant of the system.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    anonymous_pages(&statm).unwrap_or(0) * page
}

/// Returns resident minus shared pages, the second and third number of `/proc/self/statm`.
fn anonymous_pages(statm: &str) -> Option<usize> {
    let mut numbers = statm.split_ascii_whitespace().skip(1).map(str::parse::<usize>);
    let (resident, shared) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some(resident.saturating_sub(shared))
}

/// Returns the freed pages of mimalloc to the system.
///
/// Pages that threads keep for their next allocations stay. The call takes about a tenth of a millisecond for each
/// mebibyte that it returns.
pub fn purge() {
    // SAFETY: `mi_collect` may be called by any thread at any time; it frees no live allocation.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_pages_are_resident_minus_shared() {
        assert_eq!(anonymous_pages("900 700 200 50 0 600 0\n"), Some(500));
        assert_eq!(anonymous_pages(""), None);
        assert_eq!(anonymous_pages("900 x 200"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn touched_pages_are_resident() {
        let before = resident_bytes();
        let bytes = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(resident_bytes() >= before + bytes.len() / 2);
    }
}
