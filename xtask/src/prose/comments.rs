//! Comments of a Rust source; strings, characters and lifetimes are skipped.

/// Comments with the number of their first line, counted from 1. Comments of the same kind on consecutive lines of
/// their own are one comment.
pub fn comments(source: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    // Marker and line of the comment that the next line may continue.
    let mut open = ("", 0);
    let mut line = 1;
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let taken = if rest.starts_with("//") {
            let text = rest.lines().next().unwrap_or_default();
            let marker = ["///", "//!", "//"].into_iter().find(|m| text.starts_with(m)).unwrap_or("//");
            let is_alone = source[..at].rsplit('\n').next().unwrap_or_default().trim().is_empty();
            let body = text[marker.len()..].trim_start_matches('/');
            match out.last_mut() {
                Some((_, last)) if is_alone && open == (marker, line) => {
                    last.push('\n');
                    last.push_str(body);
                }
                _ => out.push((line, body.to_owned())),
            }
            open = if is_alone { (marker, line + 1) } else { ("", 0) };
            text.len()
        } else if rest.starts_with("/*") {
            let taken = rest.find("*/").map_or(rest.len(), |end| end + 2);
            out.push((line, rest[2..taken].trim_end_matches("*/").to_owned()));
            taken
        } else {
            code_len(rest, source[..at].chars().next_back())
        };
        line += rest[..taken].matches('\n').count();
        at += taken;
    }
    out
}

/// Length of the literal, or of the one character, at the start of `code`.
fn code_len(code: &str, before: Option<char>) -> usize {
    let is_word_start = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if is_word_start {
        let raw = code.strip_prefix("br").or(code.strip_prefix('r'));
        let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
        if let Some(text) = raw.and_then(|raw| raw[hashes..].strip_prefix('"')) {
            let start = code.len() - text.len();
            let end = format!("\"{}", "#".repeat(hashes));
            return text.find(&end).map_or(code.len(), |found| start + found + end.len());
        }
    }
    match code.chars().next() {
        Some('"') => quoted_len(code, '"'),
        // A character, not a lifetime: escaped, or closed after one character.
        Some('\'') if code[1..].starts_with('\\') || code[1..].chars().nth(1) == Some('\'') => quoted_len(code, '\''),
        first => first.map_or(1, char::len_utf8),
    }
}

fn quoted_len(code: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in code.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_kind_are_one_comment() {
        let source = "//! a\n//! b\n\n/// c\n// d\nfn f() {} // e\n    // f\n    // g\n/* h\ni */ //// j\n";
        let found = comments(source);
        let expected = [(1, " a\n b"), (4, " c"), (5, " d"), (6, " e"), (7, " f\n g"), (9, " h\ni "), (10, " j")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn literals_are_no_comments() {
        let source = r####"f("// a \" // b", r#"// " c"#, b"// d", '"', '\'', 'é'); // é"####;
        assert_eq!(comments(source), [(1, " é".to_owned())]);
        assert_eq!(comments("fn f<'a>(x: &'a str, r: u8) { r } // x"), [(1, " x".to_owned())]);
    }
}
