//! Sizes of files and functions, and type names that a crate defines twice.
//!
//! Limits: 900 lines a file, 100 lines a function from `fn` to its closing brace. A struct, enum, trait or type at the
//! top level of a file has a name of its own in its crate, tests aside. Offenders that are known are listed in
//! `xtask/allowed_sizes.txt`, which may only shrink: a listed offender that is none any more is an offence, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::code::{self, Token};
use crate::crate_sources::{self, Source};
use crate::files;

const FILE_LINES_MAX: usize = 900;
const FUNCTION_LINES_MAX: usize = 100;
/// Known offenders, as in the message up to the colon; see [`files::list`].
const ALLOWED: &str = "xtask/allowed_sizes.txt";

/// A rule that a file, a function or a type breaks.
#[derive(Debug, PartialEq, Eq)]
struct Offence {
    subject: String,
    reason: String,
}

pub fn check(root: &Path, offences: &mut Vec<String>) {
    let allowed: BTreeSet<String> = match files::list(root, ALLOWED) {
        Ok(list) => list.into_iter().collect(),
        Err(error) => return offences.push(format!("{ALLOWED}: {error}")),
    };
    let found = found(root);
    for offence in found.iter().filter(|o| !allowed.contains(o.subject.as_str())) {
        offences.push(format!("{}: {}", offence.subject, offence.reason));
    }
    for subject in allowed.iter().filter(|a| found.iter().all(|o| o.subject != **a)) {
        offences.push(format!("{ALLOWED} lists \"{subject}\", which offends no longer: remove the line"));
    }
}

fn found(root: &Path) -> Vec<Offence> {
    let mut out = Vec::new();
    for path in files::rust_sources(root) {
        let text = fs::read_to_string(root.join(&path)).unwrap_or_default();
        out.extend(long_file(&path, &text));
        out.extend(long_functions(&path, &code::tokens(&text)));
    }
    for folder in files::crate_folders(root) {
        let sources = crate_sources::read(root, &folder).unwrap_or_default();
        out.extend(repeated_types(&folder, &sources));
    }
    out
}

fn long_file(path: &str, text: &str) -> Option<Offence> {
    let lines = text.lines().count();
    (lines > FILE_LINES_MAX)
        .then(|| Offence { subject: path.to_owned(), reason: format!("{lines} lines, the limit is {FILE_LINES_MAX}") })
}

fn long_functions(path: &str, tokens: &[Token<'_>]) -> Vec<Offence> {
    let mut out = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "fn" || !pair[1].is_word() {
            continue;
        }
        let Some(open) = body(tokens, at) else { continue };
        let last = tokens.get(code::closing(tokens, open)).map_or(pair[0].line, |t| t.line);
        let lines = last - pair[0].line + 1;
        if lines > FUNCTION_LINES_MAX {
            out.push(Offence {
                subject: format!("{path} fn {}", pair[1].text),
                reason: format!("{lines} lines, the limit is {FUNCTION_LINES_MAX}"),
            });
        }
    }
    out
}

/// Position of the brace that opens the body of the function at `at`; none for a declaration.
fn body(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0;
    for (position, token) in tokens.iter().enumerate().skip(at) {
        match token.text {
            "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "{" if depth == 0 => return Some(position),
            ";" if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

fn repeated_types(folder: &str, sources: &[Source]) -> Vec<Offence> {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in sources {
        for name in types(&code::without_tests(&code::tokens(&source.text))) {
            places.entry(name).or_default().insert(&source.path);
        }
    }
    let repeated = places.into_iter().filter(|(_, paths)| paths.len() > 1);
    repeated
        .map(|(name, paths)| Offence {
            subject: format!("{folder} type {name}"),
            reason: format!("defined in {}", paths.into_iter().collect::<Vec<_>>().join(", ")),
        })
        .collect()
}

/// Names of the types and traits at the top level of a file.
fn types<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut at = 0;
    while at + 1 < tokens.len() {
        match tokens[at].text {
            "(" | "[" | "{" => at = code::closing(tokens, at),
            "struct" | "enum" | "union" | "trait" | "type" if tokens[at + 1].is_word() => out.push(tokens[at + 1].text),
            _ => {}
        }
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_files_and_functions_are_counted() {
        let long = "x();\n".repeat(FUNCTION_LINES_MAX - 1);
        let limit = format!("fn a(f: fn(u8) -> [u8; 2]) {{\n{}}}\n", &long[..long.len() - 5]);
        assert_eq!(long_functions("a.rs", &code::tokens(&limit)), []);
        let above = format!("trait T {{ fn a(); }}\nfn b() {{ \"}}\"; // }}\n{long}}}\n");
        let offence = Offence { subject: "a.rs fn b".into(), reason: "101 lines, the limit is 100".into() };
        assert_eq!(long_functions("a.rs", &code::tokens(&above)), [offence]);
        assert_eq!(long_file("a.rs", &"\n".repeat(FILE_LINES_MAX)), None);
        assert!(long_file("a.rs", &"\n".repeat(FILE_LINES_MAX + 1)).is_some());
    }

    #[test]
    fn types_are_repeated_in_two_files_only() {
        let sources = [
            ("a.rs", "#[cfg(x)] struct A; #[cfg(y)] struct A; impl B for A { type Item = u8; } enum C {}"),
            ("b.rs", "type C = u8; mod d { struct A; } #[cfg(test)] mod tests { struct A; }"),
        ];
        let found = repeated_types("crates/a", &crate_sources::from_texts(&sources));
        assert_eq!(found, [Offence { subject: "crates/a type C".into(), reason: "defined in a.rs, b.rs".into() }]);
    }
}
