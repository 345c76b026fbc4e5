//! Comments of a Rust source; strings, characters and lifetimes are skipped.

use crate::code::skipped_len;

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
            let taken = skipped_len(rest, None);
            out.push((line, rest[2..taken].trim_end_matches("*/").to_owned()));
            taken
        } else {
            match skipped_len(rest, source[..at].chars().next_back()) {
                0 => rest.chars().next().map_or(1, char::len_utf8),
                literal => literal,
            }
        };
        line += rest[..taken].matches('\n').count();
        at += taken;
    }
    out
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
