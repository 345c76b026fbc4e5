//! Sources of a crate without the modules that are compiled for tests only.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::{code, files};

/// Path of a module below the crate; empty for the root.
pub type Module = Vec<String>;

/// A file of a crate.
pub struct Source {
    /// Relative to the folder `src`.
    pub path: String,
    pub module: Module,
    pub text: String,
}

/// Sources in `folder`, without modules of tests.
pub fn read(root: &Path, folder: &str) -> io::Result<Vec<Source>> {
    let src = format!("{folder}/src/");
    let mut out = Vec::new();
    for path in files::files_in(root, &src, &["rs"]) {
        let text = fs::read_to_string(root.join(&path))?;
        out.push(source(path.trim_start_matches(&src), &text));
    }
    Ok(without_test_modules(out))
}

/// Sources of a made-up crate, each a path relative to `src` and a text.
#[cfg(test)]
pub fn from_texts(files: &[(&str, &str)]) -> Vec<Source> {
    without_test_modules(files.iter().map(|(path, text)| source(path, text)).collect())
}

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), module: module(path), text: text.to_owned() }
}

fn module(path: &str) -> Module {
    let mut segments: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_root = segments.len() == 1 && ["lib", "main"].contains(&segments[0].as_str());
    if is_root || segments.last().is_some_and(|s| s == "mod") {
        segments.pop();
    }
    segments
}

pub fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn without_test_modules(sources: Vec<Source>) -> Vec<Source> {
    let mut tests: BTreeSet<Module> = BTreeSet::new();
    for source in &sources {
        let names = test_modules(&code::tokens(&source.text)).into_iter();
        tests.extend(names.map(|name| child(&source.module, &name)));
    }
    let is_test = |module: &Module| (0..=module.len()).any(|len| tests.contains(&module[..len]));
    sources.into_iter().filter(|source| !is_test(&source.module)).collect()
}

/// Names of `#[cfg(test)] mod name;`.
fn test_modules(tokens: &[code::Token<'_>]) -> Vec<String> {
    let starts = (0..tokens.len()).filter(|at| code::is_test_attribute(&tokens[*at..]));
    let items = starts.map(|at| &tokens[at..at + code::item_len(&tokens[at..])]);
    items
        .filter_map(|item| match item {
            [.., word, name, end] if word.text == "mod" && end.text == ";" => Some(name.text.to_owned()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_tests_and_their_children_are_left_out() {
        let files = [
            ("lib.rs", "mod a; #[cfg(test)] pub(crate) mod b; #[cfg(test)] use a::A;"),
            ("a/mod.rs", "#[cfg(test)] mod tests { }"),
            ("a/tests.rs", ""),
            ("b.rs", ""),
            ("b/c.rs", ""),
        ];
        let shown: Vec<String> =
            from_texts(&files).into_iter().map(|s| format!("{}={}", s.path, s.module.join("::"))).collect();
        assert_eq!(shown, ["lib.rs=", "a/mod.rs=a", "a/tests.rs=a::tests"]);
    }
}
