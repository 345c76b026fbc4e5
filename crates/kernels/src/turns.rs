//! Requests the scheduler's time slice for a thread. A hint: results never depend on it.
//!
//! Under EEVDF (Linux 6.12+) a waking thread preempts the running thread at once if its requested slice is shorter.
//! Otherwise the waking thread waits until the scheduler next checks the running thread's slice, up to four
//! milliseconds. Threads for which clients wait therefore request short slices, and threads with long work request long
//! slices, so that every other thread of the machine, including clients, preempts them. The shares of a processor stay
//! the same. On other systems, or without permission, the request has no effect.

/// Requests short slices for the calling thread, so that it runs soon after it wakes.
///
/// For threads for which clients wait and which have little work at a time.
pub fn ask_for_short_turns() {
    #[cfg(target_os = "linux")]
    linux::ask_for_turns_of(linux::SHORT);
}

/// Requests long slices for the calling thread and the threads that it starts: other waking threads preempt them at
/// once.
///
/// For threads that have much work at a time.
pub fn ask_for_long_turns() {
    #[cfg(target_os = "linux")]
    linux::ask_for_turns_of(linux::LONG);
}

/// Lowers the priority of the calling thread, and of threads that it starts, to nice(2) level `niceness`.
///
/// 0 is the normal priority, 19 the lowest. A thread that already has a lower priority keeps it. For long work beside
/// threads for which clients wait.
pub fn lower_priority(niceness: i32) {
    #[cfg(target_os = "linux")]
    linux::lower_priority(niceness);
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    /// Processor time of a small commit. The default slice is one to three milliseconds, and its end is checked only
    /// every few milliseconds.
    pub(super) const SHORT: Duration = Duration::from_micros(250);
    /// Longer than the default slice on any machine, and short enough for threads of equal priority to wait.
    pub(super) const LONG: Duration = Duration::from_millis(20);

    const BYTES: u32 = size_of::<libc::sched_attr>() as u32;

    /// Returns true if the system accepted the request.
    pub(super) fn ask_for_turns_of(turn: Duration) -> bool {
        let Some(mut attributes) = get() else { return false };
        // Under real-time and deadline policies the field has a different meaning.
        if !matches!(attributes.sched_policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH) {
            return false;
        }
        attributes.size = BYTES;
        attributes.sched_runtime = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: thread 0 is the calling thread; the kernel reads `size` bytes of `attributes`, which is alive, and
        // writes no memory of the process (sched_setattr(2)).
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
    }

    /// Returns true if the system accepted the priority.
    pub(super) fn lower_priority(niceness: i32) -> bool {
        let Some(mut attributes) = get() else { return false };
        if !matches!(attributes.sched_policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH) {
            return false;
        }
        attributes.size = BYTES;
        attributes.sched_nice = attributes.sched_nice.max(niceness.min(19));
        // SAFETY: as in `ask_for_turns_of`.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
    }

    fn get() -> Option<libc::sched_attr> {
        let mut attributes = libc::sched_attr {
            size: BYTES,
            sched_policy: 0,
            sched_flags: 0,
            sched_nice: 0,
            sched_priority: 0,
            sched_runtime: 0,
            sched_deadline: 0,
            sched_period: 0,
        };
        // SAFETY: thread 0 is the calling thread; the kernel writes at most `BYTES` bytes to `attributes`, which has
        // that size (sched_getattr(2)).
        let done = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, BYTES, 0) == 0 };
        done.then_some(attributes)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn lower_priority_keeps_the_time_slice() {
            std::thread::spawn(|| {
                assert!(ask_for_turns_of(LONG));
                let before = get().expect("attributes");
                assert!(lower_priority(before.sched_nice + 3));
                let after = get().expect("attributes");
                assert_eq!(after.sched_nice, before.sched_nice + 3);
                assert_eq!((after.sched_policy, after.sched_runtime), (before.sched_policy, before.sched_runtime));
                assert!(lower_priority(before.sched_nice));
                assert_eq!(get().expect("attributes").sched_nice, before.sched_nice + 3, "never raised");
            })
            .join()
            .expect("lowered");
        }

        #[test]
        fn a_thread_has_the_turns_it_asked_for_and_its_priority() {
            std::thread::spawn(|| {
                let before = get().expect("attributes");
                for turn in [SHORT, LONG] {
                    assert!(ask_for_turns_of(turn));
                    let after = get().expect("attributes");
                    assert_eq!((after.sched_policy, after.sched_nice), (before.sched_policy, before.sched_nice));
                    // Systems before Linux 6.12 accept the request and ignore it.
                    let taken = [u64::try_from(turn.as_nanos()).expect("short"), before.sched_runtime];
                    assert!(taken.contains(&after.sched_runtime), "{}", after.sched_runtime);
                }
            })
            .join()
            .expect("asked");
        }
    }
}
