//! How long a thread's turn is when others want its processor. A hint: results never depend on it.
//!
//! Who wakes runs at once if its turns are shorter than those of the thread that has the processor, or waits until the system
//! next looks whether that one's turn is over, for up to four milliseconds. So threads that somebody waits for ask for short
//! turns, and threads that are busy for long ask for long ones: every other thread of the machine, clients too, comes in between.
//! Shares of a processor stay as they are. Linux from 6.12 on fulfils it; elsewhere, and where it is forbidden, nothing changes.

/// The calling thread asks for short turns, and so comes soon after it wakes. For threads that somebody waits for and that
/// have little to do at a time.
pub fn ask_for_short_turns() {
    #[cfg(target_os = "linux")]
    linux::ask_for_turns_of(linux::SHORT);
}

/// The calling thread, and those that it starts, ask for long turns: others that wake get its processor at once. For threads that
/// have much to do at a time.
pub fn ask_for_long_turns() {
    #[cfg(target_os = "linux")]
    linux::ask_for_turns_of(linux::LONG);
}

/// Lowers the priority of the calling thread, and of threads that it starts, by `niceness` steps of nice(2) at most: 0 is the
/// normal priority, 19 the lowest. A thread that has a lower priority already keeps it. For long work beside threads that
/// somebody waits for.
pub fn lower_priority(niceness: i32) {
    #[cfg(target_os = "linux")]
    linux::lower_priority(niceness);
    #[cfg(not(target_os = "linux"))]
    let _ = niceness;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    /// What a small commit takes of a processor. The system's own turn is a millisecond or three, and it looks whether one
    /// is over only every few milliseconds.
    pub(super) const SHORT: Duration = Duration::from_micros(250);
    /// Longer than the system's own on any machine, and still no time to wait for among equals.
    pub(super) const LONG: Duration = Duration::from_millis(20);

    const BYTES: u32 = size_of::<libc::sched_attr>() as u32;

    /// Whether the system took the wish.
    pub(super) fn ask_for_turns_of(turn: Duration) -> bool {
        let Some(mut attributes) = get() else { return false };
        // Of a thread that is to run at certain times, or before all others, the field says something else.
        if !matches!(attributes.sched_policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH) {
            return false;
        }
        attributes.size = BYTES;
        attributes.sched_runtime = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: thread 0 is the calling one; the kernel reads `size` bytes of `attributes`, which live, and writes none
        // of ours (sched_setattr(2)).
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
    }

    /// Returns true if the system took the priority.
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
        // SAFETY: thread 0 is the calling one; the kernel writes at most `BYTES` to `attributes`, which has as many
        // (sched_getattr(2)).
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
                    // Systems before Linux 6.12 take it and go on as before.
                    let taken = [u64::try_from(turn.as_nanos()).expect("short"), before.sched_runtime];
                    assert!(taken.contains(&after.sched_runtime), "{}", after.sched_runtime);
                }
            })
            .join()
            .expect("asked");
        }
    }
}
