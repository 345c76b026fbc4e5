//! Paragraphs of Markdown without code: each paragraph, list item, heading and table cell on one line.

/// Takes the place of a code span, so that a sentence may begin with one.
const CODE: &str = "CODE";

/// Paragraphs with the number of the line that each begins on, counted from 0.
pub fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut current: Option<(usize, String)> = None;
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark));
        if fence.is_some() || mark.is_some() {
            out.extend(current.take());
            fence = if fence.is_none() { mark } else { fence.filter(|open| mark != Some(*open)) };
            continue;
        }
        let (item, is_new) = without_marker(line);
        if item.is_empty() || is_new || line.starts_with('|') {
            out.extend(current.take());
        }
        if line.starts_with('|') {
            out.extend(cells(line).map(|cell| (number, cell)));
        } else if !item.is_empty() {
            let (_, paragraph) = current.get_or_insert_with(|| (number, String::new()));
            paragraph.push(' ');
            paragraph.push_str(item);
        }
        if line.starts_with('#') {
            out.extend(current.take());
        }
    }
    out.extend(current);
    out.into_iter().map(|(number, paragraph)| (number, without_code(&paragraph))).collect()
}

/// Cells of a row of a table; none of a row of dashes. A bar that is escaped or in a code span does not end a cell.
fn cells(line: &str) -> impl Iterator<Item = String> {
    let line = without_code(&line.replace("\\|", " "));
    let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
    cells.into_iter().filter(|cell| cell.contains(char::is_alphanumeric))
}

/// The line without the marker of a list item, heading or quotation, and true if there was one.
fn without_marker(line: &str) -> (&str, bool) {
    if line.starts_with('#') {
        return (line.trim_start_matches('#').trim_start(), true);
    }
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = digits.len() < line.len();
    let markers = ["- ", "* ", "+ ", "> "].into_iter().find_map(|marker| line.strip_prefix(marker));
    let numbered = if is_numbered { digits.strip_prefix(". ") } else { None };
    markers.or(numbered).map_or((line, false), |item| (item.trim_start(), true))
}

/// Replaces code spans by [`CODE`] and links by their text.
fn without_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim();
    while let Some(at) = rest.find(['`', ']']) {
        out.push_str(&rest[..at]);
        let ticks = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        rest = &rest[at..];
        let (skipped, replacement) = if ticks > 0 {
            let closing = rest[ticks..].find(&rest[..ticks]).map(|end| end + 2 * ticks);
            closing.map_or((ticks, ""), |end| (end, CODE))
        } else if rest.starts_with("](") {
            rest.find(')').map_or((1, "]"), |end| (end + 1, ""))
        } else {
            (1, "]")
        };
        out.push_str(replacement);
        rest = &rest[skipped..];
    }
    out.push_str(rest);
    out.replace('[', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(markdown: &str) -> Vec<String> {
        paragraphs(markdown).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn wrapped_lines_are_one_paragraph() {
        assert_eq!(
            paragraphs("# A b\none\ntwo\n\nthree"),
            [(0, "A b".into()), (1, "one two".into()), (4, "three".into())]
        );
        assert_eq!(texts("- one\n  two\n- three\n1. four\n10. five"), ["one two", "three", "four", "five"]);
        assert_eq!(texts("in\n2016 rows"), ["in 2016 rows"]);
    }

    #[test]
    fn code_is_left_out() {
        assert_eq!(texts("a\n```sql\nWhat is\n```\nb\n~~~\n```\n~~~\nc"), ["a", "b", "c"]);
        assert_eq!(texts("`what` is ``a ` b`` and [a `link`](what.md) [x]"), ["CODE is CODE and a CODE x]"]);
        assert_eq!(texts("an open ` tick"), ["an open  tick"]);
    }

    #[test]
    fn cells_are_paragraphs() {
        let table = "| a b | `x | y` |\n|---|:-:|\n| ip \\| mask | … |";
        assert_eq!(texts(table), ["a b", "CODE", "ip   mask"]);
    }
}
