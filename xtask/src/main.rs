//! Automation: `cargo run -p xtask -- tidy` checks rules that no compiler checks; `… prose` counts plain words.
//!
//! `tidy`: crate dependencies (against the manifests), a header in every source file, no ignored tests, no sleeps in
//! tests, no unsafe code outside of its crates, plain prose in the files of `xtask/prose_done.txt`. It prints every
//! offence and fails if there is one. `prose [PATH…]` only reports.
#![forbid(unsafe_code)]

mod prose;
mod rooms;
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
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy | prose [PATH…]");
            ExitCode::from(2)
        }
    }
}

fn tidy() -> ExitCode {
    let root = root();
    let mut offences = Vec::new();
    rooms::check(&root, &mut offences);
    sources::check(&root, &mut offences);
    prose::check(&root, &mut offences);
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

fn root() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| "xtask".to_owned()))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let mut offences = Vec::new();
        super::rooms::check(&super::root(), &mut offences);
        super::sources::check(&super::root(), &mut offences);
        super::prose::check(&super::root(), &mut offences);
        assert!(offences.is_empty(), "{}", offences.join("\n"));
    }
}
