//! How long freed memory stays with the process, and the watch over its resident size.
//!
//! The allocator gives freed memory back after a second, and the system clears every page that comes again: while rows
//! went through staging that was a fifth of the server's processor time. It reads its settings from the environment
//! before `main`, so the process begins once more with them. Its id, files and arguments stay the same.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use std::{env, io, thread};
use tidalite_memory::{check_resident, purge, resident_bytes};

/// A sort frees and allocates up to 1 GiB a second, a twentieth of it between two checks.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// In milliseconds: longer than the time between two merges of a table that rows pour into, shorter than anybody wonders
/// where the memory of a large query went.
const KEPT: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "10000");

/// Makes this process keep freed memory for a while. Returns where that is so already, was decided otherwise by the
/// environment, or cannot be.
pub fn keep() {
    if env::var_os(KEPT.0).is_some() {
        return;
    }
    let Ok(program) = env::current_exe() else { return };
    let mut arguments = env::args_os();
    let Some(name) = arguments.next() else { return };
    // Only an error comes back; then it goes on with the allocator's own settings.
    let _ = Command::new(program).arg0(name).args(arguments).env(KEPT.0, KEPT.1).exec();
}

/// Starts a thread that returns freed pages to the system while the resident size is near `memory.bytes`. The thread runs
/// until the process ends.
///
/// # Errors
/// The operating system cannot create a thread.
pub fn watch() -> io::Result<()> {
    let check = || loop {
        thread::sleep(CHECK_EVERY);
        check_resident(resident_bytes, purge);
    };
    thread::Builder::new().name("memory".to_owned()).spawn(check).map(drop)
}
