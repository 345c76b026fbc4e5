//! Counts of plain words: sentences that begin with Of, What, Whether, Where, Who or So, and uses of `what`.
//!
//! Input: the comments of all Rust sources and all Markdown files. Output: a table per crate and per Markdown file,
//! worst first. Code blocks, code spans, link targets and string literals are no prose. `xtask tidy` calls [`check`],
//! which fails only for the files and folders listed in `xtask/prose_done.txt`.

mod comments;
mod markdown;
mod sentences;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::files;
use sentences::Sentence;

/// Largest share of sentences that begin with one of [`sentences::OPENERS`], in percent.
const OPENERS_PERCENT_MAX: usize = 2;
/// Largest number of uses of `what` in a thousand words.
const WHATS_PER_MILLE_MAX: usize = 1;
/// Files and folders that meet both limits; see [`files::list`].
const DONE: &str = "xtask/prose_done.txt";
/// Extensions of files with prose.
const EXTENSIONS: [&str; 2] = ["rs", "md"];

/// Counts over the prose of one file or of a group of files.
#[derive(Clone, Copy, Default)]
struct Counts {
    sentences: usize,
    openers: usize,
    words: usize,
    whats: usize,
}

impl Counts {
    fn from_sentences(sentences: &[Sentence]) -> Counts {
        let mut counts = Counts::default();
        for sentence in sentences {
            counts.words += sentence.words();
            counts.whats += sentence.whats();
            counts.sentences += usize::from(sentence.is_counted());
            counts.openers += usize::from(sentence.has_opener());
        }
        counts
    }

    fn add(&mut self, other: Counts) {
        self.sentences += other.sentences;
        self.openers += other.openers;
        self.words += other.words;
        self.whats += other.whats;
    }

    fn openers_percent(self) -> f64 {
        100.0 * self.openers as f64 / self.sentences.max(1) as f64
    }

    fn whats_per_mille(self) -> f64 {
        1000.0 * self.whats as f64 / self.words.max(1) as f64
    }

    /// How many times the limits are exceeded, for the order of the report.
    fn excess(self) -> f64 {
        self.openers_percent() / OPENERS_PERCENT_MAX as f64 + self.whats_per_mille() / WHATS_PER_MILLE_MAX as f64
    }

    /// True if both limits are met. One occurrence is allowed in files too short for a share.
    fn is_plain(self) -> bool {
        self.openers <= (self.sentences * OPENERS_PERCENT_MAX / 100).max(1)
            && self.whats <= (self.words * WHATS_PER_MILLE_MAX / 1000).max(1)
    }
}

/// Prints the report: groups without `paths`; files and their sentences with an opener or `what` with `paths`.
pub fn report(root: &Path, paths: &[String]) {
    let files = files::files_in(root, "", &EXTENSIONS);
    let mut rows: BTreeMap<String, Counts> = BTreeMap::new();
    let mut total = Counts::default();
    for path in files.iter().filter(|f| paths.is_empty() || paths.iter().any(|p| is_within(f, p))) {
        let sentences = sentences_of(root, path);
        let counts = Counts::from_sentences(&sentences);
        total.add(counts);
        rows.entry(if paths.is_empty() { group(path) } else { path.clone() }).or_default().add(counts);
        for sentence in sentences.iter().filter(|s| !paths.is_empty() && (s.has_opener() || s.whats() > 0)) {
            println!("{path}:{}: {}", sentence.line, sentence.text);
        }
    }
    let mut rows: Vec<(String, Counts)> = rows.into_iter().collect();
    rows.sort_by(|a, b| b.1.excess().total_cmp(&a.1.excess()));
    println!("{:>9} {:>8} {:>7} {:>8} {:>9}", "sentences", "openers", "words", "what", "what/1000");
    for (name, counts) in rows.iter().map(|(n, c)| (n.as_str(), *c)).chain([("total", total)]) {
        println!(
            "{:>9} {:>7.1}% {:>7} {:>8} {:>9.1}  {name}",
            counts.sentences,
            counts.openers_percent(),
            counts.words,
            counts.whats,
            counts.whats_per_mille()
        );
    }
}

/// Reports every file below a path of [`DONE`] that misses a limit, and every path that matches no file.
pub fn check(root: &Path, offences: &mut Vec<String>) {
    let list = match files::list(root, DONE) {
        Ok(list) => list,
        Err(error) => return offences.push(format!("{DONE}: {error}")),
    };
    let files = files::files_in(root, "", &EXTENSIONS);
    for done in &list {
        if !files.iter().any(|file| is_within(file, done)) {
            offences.push(format!("{DONE} lists {done}, which holds no Rust source and no Markdown file"));
        }
        for file in files.iter().filter(|file| is_within(file, done)) {
            let counts = Counts::from_sentences(&sentences_of(root, file));
            if !counts.is_plain() {
                offences.push(format!(
                    "{file}: {:.1} % of the sentences begin with Of, What, Whether, Where, Who or So (limit {} %), \
                     {:.1} uses of \"what\" per 1,000 words (limit {}); see `xtask prose {file}`",
                    counts.openers_percent(),
                    OPENERS_PERCENT_MAX,
                    counts.whats_per_mille(),
                    WHATS_PER_MILLE_MAX
                ));
            }
        }
    }
}

fn sentences_of(root: &Path, path: &str) -> Vec<Sentence> {
    let Ok(text) = fs::read_to_string(root.join(path)) else { return Vec::new() };
    let texts = if path.ends_with(".rs") { comments::comments(&text) } else { vec![(1, text)] };
    let mut out = Vec::new();
    for (first_line, text) in &texts {
        for (line, paragraph) in markdown::paragraphs(text) {
            sentences::split(first_line + line, &paragraph, &mut out);
        }
    }
    out
}

fn is_within(file: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    file == path || file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// Row of the report: the crate or top folder of a source; a Markdown file itself, except result pages.
fn group(path: &str) -> String {
    if path.starts_with("bench/results/") {
        return "bench/results/*.md".to_owned();
    }
    if path.ends_with(".md") {
        return path.to_owned();
    }
    let depth = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_occurrence_is_allowed_in_a_short_file() {
        let short = Counts { sentences: 10, openers: 1, words: 90, whats: 1 };
        assert!(short.is_plain());
        assert!(!Counts { openers: 2, ..short }.is_plain());
        assert!(!Counts { whats: 2, ..short }.is_plain());
        assert!(Counts { sentences: 100, openers: 2, words: 3000, whats: 3 }.is_plain());
        assert!(!Counts { sentences: 100, openers: 3, words: 3000, whats: 3 }.is_plain());
    }

    #[test]
    fn rows_are_crates_and_pages() {
        assert_eq!(group("crates/query/src/exec/mod.rs"), "crates/query");
        assert_eq!(group("tests/slt/main.rs"), "tests");
        assert_eq!(group("docs/sql/ddl.md"), "docs/sql/ddl.md");
        assert_eq!(group("bench/results/a.md"), "bench/results/*.md");
        assert!(is_within("docs/sql/ddl.md", "docs/sql/"));
        assert!(!is_within("docs/sql.md", "docs/sql"));
    }
}
