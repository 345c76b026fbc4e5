//! Any bytes as a symbol file: no panic, no memory for claims. What is read is the same after it was written again.
//!
//! The first byte of an input says how many bytes the manifest claims beyond those of the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidalite_fuzz::folder::{self, TABLE};
use tidalite_fuzz::{memory, seal};
use tidalite_storage::manifest::Change;
use tidalite_storage::symbol_file::{FOLDER, append, path_of, read};
use tidalite_types::Txn;

const ALLOWED: usize = 64 << 20;

fuzz_target!(|input: &[u8]| {
    let [claim, bytes @ ..] = input else { return };
    let mut bytes = bytes.to_vec();
    seal::symbols(&mut bytes);
    let claimed = if *claim < 64 { 0 } else { 1_u64 << (claim & 63) };
    memory::within(ALLOWED, || recover(&bytes, bytes.len() as u64 + claimed));
});

fn recover(bytes: &[u8], len: u64) {
    let fs = folder::empty();
    folder::put(&*fs, &path_of(TABLE), bytes);
    if let Ok(entries) = read(&*fs, TABLE, len) {
        assert_eq!(len, bytes.len() as u64);
        let other = folder::empty();
        other.create_dir_all(FOLDER.as_ref()).expect("a folder");
        let end = append(&*other, TABLE, 0, &entries).expect("entries are written");
        assert_eq!(read(&*other, TABLE, end).expect("what was written is read"), entries);
    }
    let content = Change::Content {
        table: TABLE,
        add: Vec::new(),
        remove: Vec::new(),
        merged: Txn(1),
        symbol_bytes: len,
    };
    let manifest = folder::manifest(&fs, &[content]);
    folder::recover_twice(&fs, &manifest);
}
