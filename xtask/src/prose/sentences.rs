//! Splits a paragraph into sentences and counts the words that `xtask prose` looks for.

/// First words that hide the subject of a sentence.
pub const OPENERS: [&str; 6] = ["of", "what", "whether", "where", "who", "so"];

/// Shorter fragments (cells, headings, list items) are not counted as sentences; their words are.
const SENTENCE_WORDS_MIN: usize = 3;

/// Abbreviations whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 9] = ["e.g.", "i.e.", "cf.", "vs.", "etc.", "no.", "approx.", "incl.", "resp."];

pub struct Sentence {
    /// Line of the paragraph that the sentence is part of, counted from 1.
    pub line: usize,
    pub text: String,
}

impl Sentence {
    pub fn words(&self) -> usize {
        words(&self.text).count()
    }

    /// Uses of the word `what` in any case; `whatever` is another word.
    pub fn whats(&self) -> usize {
        words(&self.text).filter(|w| w.eq_ignore_ascii_case("what")).count()
    }

    pub fn is_counted(&self) -> bool {
        self.words() >= SENTENCE_WORDS_MIN
    }

    pub fn has_opener(&self) -> bool {
        let first = words(&self.text).next().unwrap_or_default();
        // WHERE at the start of a sentence is a keyword of SQL.
        let is_keyword = first.chars().all(char::is_uppercase);
        self.is_counted() && !is_keyword && OPENERS.iter().any(|opener| first.eq_ignore_ascii_case(opener))
    }
}

/// Appends the sentences of `paragraph`, which holds no line breaks.
///
/// A sentence ends at `.`, `!` or `?` (and closing quotes or brackets after it) before a space that is followed by
/// anything but a lower-case letter.
pub fn split(line: usize, paragraph: &str, out: &mut Vec<Sentence>) {
    let mut start = 0;
    for (space, _) in paragraph.match_indices(' ') {
        let (before, after) = (&paragraph[start..space], paragraph[space..].trim_start());
        if ends_sentence(before) && !after.starts_with(char::is_lowercase) {
            push(line, before, out);
            start = space;
        }
    }
    push(line, &paragraph[start..], out);
}

fn ends_sentence(text: &str) -> bool {
    let bare = text.trim_end_matches(['"', '\'', ')', ']', '*', '_', '”', '’']);
    let last = bare.rsplit(' ').next().unwrap_or_default().trim_start_matches('(').to_lowercase();
    bare.ends_with(['.', '!', '?']) && !ABBREVIATIONS.contains(&last.as_str())
}

fn push(line: usize, text: &str, out: &mut Vec<Sentence>) {
    let text = text.trim();
    if words(text).next().is_some() {
        out.push(Sentence { line, text: text.to_owned() });
    }
}

/// Runs of letters and digits; an apostrophe and the letters after it belong to no word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '_')
        .map(|word| word.trim_start_matches(['\'', '_']).split('\'').next().unwrap_or_default().trim_end_matches('_'))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_texts(paragraph: &str) -> Vec<String> {
        let mut out = Vec::new();
        split(1, paragraph, &mut out);
        out.into_iter().map(|s| s.text).collect()
    }

    fn sentence(text: &str) -> Sentence {
        Sentence { line: 1, text: text.to_owned() }
    }

    #[test]
    fn full_stops_end_sentences() {
        assert_eq!(
            split_texts("A row is read. It is kept! Is it? Yes"),
            ["A row is read.", "It is kept!", "Is it?", "Yes"]
        );
        assert_eq!(
            split_texts("It ends (here.) Then \"there.\" And on"),
            ["It ends (here.)", "Then \"there.\"", "And on"]
        );
        assert_eq!(split_texts(""), Vec::<String>::new());
        assert_eq!(split_texts(" … — "), Vec::<String>::new());
    }

    #[test]
    fn other_full_stops_do_not() {
        for whole in ["version 1.5 of a.b.c", "a key, e.g. Of a table", "see config.rs. or nothing", "as in (i.e. Two)"]
        {
            assert_eq!(split_texts(whole), [whole]);
        }
        assert_eq!(split_texts("It has 3. `CODE` begins"), ["It has 3.", "`CODE` begins"]);
    }

    #[test]
    fn openers_are_first_words() {
        for text in ["Of two rows", "what is read", "So many rows", "(Where it is read)", "*Who reads it*"] {
            assert!(sentence(text).has_opener(), "{text}");
        }
        for text in ["Offsets of rows", "Rows of what", "Sorted so many", "Where", "So it", "WHERE filters the rows"] {
            assert!(!sentence(text).has_opener(), "{text}");
        }
    }

    #[test]
    fn what_is_a_word() {
        let text = sentence("What is whatever, what's somewhat \"what\"");
        assert_eq!((text.whats(), text.words()), (3, 6));
    }
}
