//! Any bytes as a manifest: no panic, no memory for claims. What is read is the same after an open wrote it again, and
//! a recovery on it succeeds or gives an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use tidalite_fuzz::{folder, memory, seal};
use tidalite_storage::manifest::{Manifest, State, find};

/// Maximum row number of a deletion for which a recovery is tried: a mask has a bit for each row up to it.
const DEAD_ROWS_MAX: u64 = 1 << 20;
const ALLOWED: usize = 64 << 20;

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    // The input as it is, and with correct checksums.
    memory::within(ALLOWED, || open(&bytes));
    seal::manifest(&mut bytes);
    memory::within(ALLOWED, || open(&bytes));
});

fn open(bytes: &[u8]) {
    let fs = folder::empty();
    folder::put(&*fs, Path::new("manifest-000000000001"), bytes);
    let found = find(&*fs);
    let Ok((manifest, is_new)) = Manifest::open(fs.clone()) else { return };
    let found = found.expect("what opens is read").expect("there is a manifest");
    assert!(!is_new && *manifest.state() == found.state);
    drop(manifest);
    let (mut manifest, _) = Manifest::open(fs.clone()).expect("what opened once opens again");
    assert!(*manifest.state() == found.state, "as it was written");
    if is_small(&found.state) {
        folder::recover_twice(&fs, &manifest);
    }
    manifest.edit(&[]).expect("an edit is written");
}

fn is_small(state: &State) -> bool {
    let dead = state.tables.values().flat_map(|table| table.dead.values()).flatten();
    dead.map(|(from, count)| from + count).max().is_none_or(|end| end <= DEAD_ROWS_MAX)
}
