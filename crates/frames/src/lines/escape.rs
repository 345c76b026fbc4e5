//! Names and text as lines carry them.

/// What keeps a name from being sent; `None` when it can be.
#[must_use]
pub fn name_problem(name: &str, what: &str) -> Option<String> {
    match what {
        "table" => tidalite_types::schema::table_name_problem(name),
        _ => tidalite_types::schema::column_name_problem(name),
    }
}

/// A name, or the value of a tag.
#[inline]
pub fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let must = |b: u8| matches!(b, b' ' | b',' | b'=' | b'\n' | b'\r' | b'\\');
    push(out, text, must);
}

/// The inside of a string in quotes.
#[inline]
pub fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    let must = |b: u8| matches!(b, b'"' | b'\n' | b'\r' | b'\\');
    push(out, text, must);
}

#[inline]
fn push(out: &mut Vec<u8>, text: &[u8], must: impl Fn(u8) -> bool + Copy) {
    // Without an exit on the way, so that it becomes a few comparisons of sixteen bytes at a time.
    if !text.iter().fold(false, |any, b| any | must(*b)) {
        out.extend_from_slice(text);
        return;
    }
    for &byte in text {
        if must(byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}
