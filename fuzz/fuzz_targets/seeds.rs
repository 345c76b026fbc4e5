//! Writes the seed files of a target into a folder: `seeds TARGET FOLDER`.

// The coverage of the crates needs the fuzzer's symbols.
use libfuzzer_sys as _;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, target, folder] = arguments.as_slice() else { panic!("seeds TARGET FOLDER") };
    for (name, bytes) in tidalite_fuzz::seeds::of(target) {
        std::fs::write(Path::new(folder).join(format!("seed-{name}")), bytes).expect("a seed is written");
    }
}
