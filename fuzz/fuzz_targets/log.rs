//! Any bytes as a file of the log: no panic, no memory for claims. A check finds damage where a recovery does, what a
//! recovery replays is the same the second time, and operations are the same after they were written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidalite_fuzz::{folder, memory, seal};
use tidalite_ingest::wal::inspect::{Commits, inspect, log_path};
use tidalite_ingest::wal::log::replay;
use tidalite_ingest::wal::record::{Op, decode_op, encode_op};
use tidalite_storage::codec::{Decoder, Encoder};
use tidalite_types::Txn;

const ALLOWED: usize = 256 << 20;
/// The commit that the manifest has.
const FROM: Txn = Txn(1);

fuzz_target!(|input: &[u8]| {
    let mut bytes = input.to_vec();
    seal::log(&mut bytes);
    memory::within(ALLOWED, || {
        let fs = folder::empty();
        folder::put(&*fs, &log_path(1), &bytes);
        let mut commits = 0;
        let replayed = replay(&*fs, FROM, |_, mut ops| {
            while let Some(op) = ops.next_op()? {
                written_again(&op);
            }
            commits += 1;
            Ok(())
        });
        let fs = folder::empty();
        // A folder without a manifest has no log.
        let manifest = folder::manifest(&fs, &[]);
        folder::put(&*fs, &log_path(1), &bytes);
        let inspected = match inspect(&*fs, FROM, &mut |_, _| Ok(())) {
            Ok(inspected) => inspected,
            Err(error) => {
                assert_eq!(replayed.map(|_| ()).map_err(|e| e.to_string()), Err(error.to_string()));
                return;
            }
        };
        assert_eq!(replayed.is_err(), inspected.damage.is_some(), "{replayed:?} {inspected:?}");
        assert_eq!(commits, inspected.commits);
        let taken = Commits::collect(&*fs, FROM, inspected.txn).expect("the folder is read");
        let again = Commits::from_file(&taken.to_file(1), 1, &log_path(1)).expect("as it was written");
        assert_eq!(taken.records, again.records);
        folder::recover_twice(&fs, &manifest);
    });
});

/// A decoded record has exactly one encoding.
fn written_again(op: &Op) {
    let mut first = Encoder::new();
    encode_op(op, &mut first);
    let mut d = Decoder::new(&first.bytes);
    let decoded = decode_op(&mut d).expect("what was written is read");
    assert!(d.rest.is_empty());
    let mut second = Encoder::new();
    encode_op(&decoded, &mut second);
    assert_eq!(first.bytes, second.bytes);
}
