//! Automation: `cargo run -p xtask -- tidy` checks rules that no compiler checks; `… prose` counts plain words.
//!
//! `tidy`: crate dependencies (against the manifests), no import cycles inside of a crate, sizes of files and functions,
//! one definition per type name in a crate, a header in every source file, no ignored tests, no sleeps in tests, no
//! unsafe code outside of its crates, plain prose in the files of `xtask/prose_done.txt`. It prints every offence and
//! fails if there is one. `prose [PATH…]` and `cycles [CRATE…]` only report.
#![forbid(unsafe_code)]

mod code;
mod crate_sources;
mod cycles;
mod files;
mod prose;
mod rooms;
mod sizes;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        Some("prose") => {
            prose::report(&root(), &std::env::args().skip(2).collect::<Vec<_>>());
            ExitCode::SUCCESS
        }
        Some("cycles") => {
            cycles::report(&root(), &std::env::args().skip(2).collect::<Vec<_>>());
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy | prose [PATH…] | cycles [CRATE…]");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let offences = offences(&root());
    for offence in &offences {
        eprintln!("tidy: {offence}");
    }
    if offences.is_empty() {
        println!("tidy: all in order");
        return ExitCode::SUCCESS;
    }
    eprintln!("tidy: {} offences", offences.len());
    ExitCode::FAILURE
}

fn offences(root: &Path) -> Vec<String> {
    let mut offences = Vec::new();
    for check in [rooms::check, cycles::check, sizes::check, sources::check, prose::check] {
        check(root, &mut offences);
    }
    offences
}

fn root() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| "xtask".to_owned()))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let offences = super::offences(&super::root());
        assert!(offences.is_empty(), "{}", offences.join("\n"));
    }
}
