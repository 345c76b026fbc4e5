//! Folders of crates, paths of files relative to the root of the repository, and lists of the checks.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders with sources that the checks read.
const FOLDERS: [&str; 5] = ["crates", "xtask", "tests", "fuzz/fuzz_targets", "bench/generate"];

/// Folders that hold no sources.
const SKIPPED: [&str; 3] = ["target", "node_modules", "fuzz/corpus"];

/// All crates of the workspace that have import rules, sorted.
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

/// The Rust sources in [`FOLDERS`], sorted.
pub fn rust_sources(root: &Path) -> Vec<String> {
    let mut out: Vec<String> = FOLDERS.iter().flat_map(|folder| files_in(root, folder, &["rs"])).collect();
    out.sort();
    out
}

/// The files in `folder` with one of the extensions, sorted; without those in hidden folders and in [`SKIPPED`].
pub fn files_in(root: &Path, folder: &str, extensions: &[&str]) -> Vec<String> {
    // `read_dir` needs a name for the current folder.
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let mut paths = Vec::new();
    collect(&root.join(folder), extensions, &mut paths);
    let shown = |path: PathBuf| path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    let mut out: Vec<String> = paths.into_iter().map(shown).collect();
    out.sort();
    out
}

fn collect(folder: &Path, extensions: &[&str], out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if !is_hidden && !SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
                collect(&path, extensions, out);
            }
        } else if path.extension().is_some_and(|own| extensions.iter().any(|extension| own == *extension)) {
            out.push(path);
        }
    }
}

/// The entries of a list: one a line, `#` starts a comment.
///
/// # Errors
/// The file cannot be read.
pub fn list(root: &Path, path: &str) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(path))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}
