//! Any bytes as a checkpoint: no panic, no memory for claims, and a second recovery gives what the first gave.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidalite_fuzz::{folder, memory, seal};
use tidalite_ingest::wal::checkpoint::{path_of, read};
use tidalite_storage::manifest::{Change, Checkpoint};
use tidalite_types::Txn;

const ALLOWED: usize = 256 << 20;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    // The input as it is, and with correct checksums.
    memory::within(ALLOWED, || recover(&bytes));
    seal::checkpoint(&mut bytes);
    memory::within(ALLOWED, || recover(&bytes));
});

fn recover(bytes: &[u8]) {
    let fs = folder::empty();
    folder::put(&*fs, &path_of(1), bytes);
    let manifest = folder::manifest(&fs, &[Change::Checkpoint(Checkpoint { txn: Txn(9), file: 1 })]);
    let is_whole = read(&*fs, 1, |_| Ok(())).is_ok();
    if is_whole {
        folder::recover_twice(&fs, &manifest);
    } else {
        assert!(folder::recovered(&fs, &manifest).is_err(), "damage is an error");
    }
}
