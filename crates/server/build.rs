//! Embeds the web console: writes `console.rs` with a table of the gzip-compressed files of `console/dist`.
//!
//! `make console` builds that folder. Without it the table is empty and the server serves a plain page.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name| env::var_os(name).map(PathBuf::from).ok_or_else(|| io::Error::other(name));
    let console = variable("CARGO_MANIFEST_DIR")?.join("../../console");
    let dist = console.join("dist");
    let mut table = String::from("static FILES: &[File] = &[\n");
    if dist.join("index.html").is_file() {
        println!("cargo:rerun-if-changed={}", dist.display());
        let mut files = Vec::new();
        list(&dist, &mut files)?;
        files.sort();
        for file in files {
            let name = file.strip_prefix(&dist).map_err(io::Error::other)?.with_extension("");
            let _ =
                writeln!(table, "File {{ path: {:?}, gzip: include_bytes!({:?}) }},", name, fs::canonicalize(&file)?);
        }
    } else {
        // The folder `dist` will appear in it.
        println!("cargo:rerun-if-changed={}", console.display());
    }
    println!("cargo:rerun-if-changed=build.rs");
    table.push_str("];\n");
    fs::write(variable("OUT_DIR")?.join("console.rs"), table)
}

/// Collects the compressed files of a folder and its folders.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "gz") {
            files.push(path);
        }
    }
    Ok(())
}
