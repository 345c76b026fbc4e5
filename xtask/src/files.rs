//! Folders of crates and paths of Rust sources, relative to the root of the repository, sorted.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders with sources that the checks read.
const FOLDERS: [&str; 5] = ["crates", "xtask", "tests", "fuzz/fuzz_targets", "bench/generate"];

/// All crates of the workspace that have import rules.
pub fn crate_folders(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let mut out: Vec<String> = entries
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| format!("crates/{}", entry.file_name().to_string_lossy()))
        .chain(["bench/generate".to_owned(), "xtask".to_owned()])
        .collect();
    out.sort();
    out
}

pub fn rust_sources(root: &Path) -> Vec<String> {
    let mut out: Vec<String> = FOLDERS.iter().flat_map(|folder| rust_sources_in(root, folder)).collect();
    out.sort();
    out
}

pub fn rust_sources_in(root: &Path, folder: &str) -> Vec<String> {
    let mut paths = Vec::new();
    collect(&root.join(folder), &mut paths);
    let shown = |path: PathBuf| path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    let mut out: Vec<String> = paths.into_iter().map(shown).collect();
    out.sort();
    out
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}
