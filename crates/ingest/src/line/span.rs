//! Finds the end of a line that may be invalid.
//!
//! Input: bytes. Output: the start of the next line. Only quotes, backslashes and newlines are considered, so that an
//! invalid line ends where its sender intended. Binary values are treated as text.

/// The extent of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineSpan {
    /// The line is complete: the position of the next line, or the end of the input.
    Ends(usize),
    /// A string that begins at this position is never closed.
    OpenQuote(usize),
}

impl LineSpan {
    /// Returns the span of the line that starts at `start`.
    pub(super) fn find(input: &[u8], start: usize) -> LineSpan {
        let mut at = start;
        let mut in_fields = false;
        while let Some(&byte) = input.get(at) {
            match byte {
                b'\n' => return LineSpan::Ends(at + 1),
                b'\\' => at += 1,
                // Tags are never quoted: a quote is part of their text.
                b' ' => in_fields = true,
                b'"' if in_fields && at > start && input[at - 1] == b'=' => match closing_quote(input, at + 1) {
                    Some(end) => at = end,
                    None => return LineSpan::OpenQuote(at),
                },
                b'#' if input[start..at].iter().all(|byte| matches!(byte, b' ' | b'\t')) => {
                    let len = memchr::memchr(b'\n', &input[at..]);
                    return LineSpan::Ends(len.map_or(input.len(), |len| at + len + 1));
                }
                _ => {}
            }
            at += 1;
        }
        LineSpan::Ends(input.len())
    }
}

fn closing_quote(input: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', input.get(at..)?)?;
        if input[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newlines_within_strings_and_behind_backslashes_end_no_line() {
        for (input, expected) in [
            (&b"t v=1 1\nx"[..], LineSpan::Ends(8)),
            (b"t v=\"a\nb\\\"\n\" 1\nx", LineSpan::Ends(15)),
            (b"t,s=\"a v=1\nx", LineSpan::Ends(11)),
            (b"t,s=a\\\nb v=1\nx", LineSpan::Ends(13)),
            (b"t v=a\"b\nx", LineSpan::Ends(8)),
            (b"# it's \"x\n", LineSpan::Ends(10)),
            (b" # it's =\"x\ny", LineSpan::Ends(12)),
            (b"t v=1", LineSpan::Ends(5)),
            (b"t v=\"1\n", LineSpan::OpenQuote(4)),
            (b"t v=\"1\\\"\n", LineSpan::OpenQuote(4)),
        ] {
            assert_eq!(LineSpan::find(input, 0), expected, "{:?}", String::from_utf8_lossy(input));
        }
    }
}
