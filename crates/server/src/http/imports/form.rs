//! The form in which QuestDB's users upload: multipart/form-data with a part `data`, perhaps one `schema` before it.

use crate::import::column_type;
use serde::Deserialize;
use tidalite::types::ColumnType;
use tidalite::{Error, ErrorKind, Result};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// What stands between the parts, if it is a form.
pub fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = |p: &str| Some(p.trim().strip_prefix("boundary=")?.trim_matches('"').to_owned());
    parameters.split(';').find_map(value).filter(|b| !b.is_empty())
}

/// The parts of a form.
#[derive(Debug, Default)]
pub struct Form {
    pub data: std::ops::Range<usize>,
    pub file_name: Option<String>,
    pub schema: Vec<(String, ColumnType)>,
}

impl Form {
    /// # Errors
    /// A part without an end, none named `data`, or a schema that is none.
    pub fn parse(body: &[u8], boundary: &str) -> Result<Form> {
        let mark = format!("--{boundary}");
        let broken = || invalid("the form is broken: a part has no end");
        let mut form = Form::default();
        let mut has_data = false;
        let mut at = memchr::memmem::find(body, mark.as_bytes()).ok_or_else(broken)? + mark.len();
        while !body[at..].starts_with(b"--") {
            let head = memchr::memmem::find(&body[at..], b"\r\n\r\n").ok_or_else(broken)?;
            let names = String::from_utf8_lossy(&body[at..at + head]).into_owned();
            let start = at + head + 4;
            let end =
                start + memchr::memmem::find(&body[start..], format!("\r\n{mark}").as_bytes()).ok_or_else(broken)?;
            at = end + 2 + mark.len();
            match attribute(&names, "name").as_deref() {
                Some("data") => {
                    form.data = start..end;
                    form.file_name = attribute(&names, "filename").filter(|n| !n.is_empty());
                    has_data = true;
                }
                Some("schema") => form.schema = schema(&body[start..end])?,
                _ => {}
            }
        }
        if has_data { Ok(form) } else { Err(invalid("the form has no part named data")) }
    }
}

/// `name="value"` of a Content-Disposition; the value may hold semicolons, and quotes behind a backslash.
fn attribute(head: &str, name: &str) -> Option<String> {
    let line = head.lines().find(|l| l.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let mut rest = line.split_once(';')?.1;
    loop {
        let (key, behind) = rest.split_once('=')?;
        let (value, next) = value(behind);
        // A word without a value may stand before.
        if key.rsplit(';').next()?.trim().eq_ignore_ascii_case(name) {
            return Some(value);
        }
        rest = next;
    }
}

/// The value that `text` begins with, and what stands behind its semicolon.
fn value(text: &str) -> (String, &str) {
    let (mut value, mut is_quoted, mut chars) = (String::new(), false, text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted && text[at + 1..].starts_with('"') => value.extend(chars.next().map(|(_, c)| c)),
            ';' if !is_quoted => return (value.trim().to_owned(), &text[at + 1..]),
            c => value.push(c),
        }
    }
    (value.trim().to_owned(), "")
}

/// `[{"name": "ts", "type": "TIMESTAMP", "pattern": …}]`; patterns are not needed for ISO 8601, the only one there is.
fn schema(json: &[u8]) -> Result<Vec<(String, ColumnType)>> {
    #[derive(Deserialize)]
    struct Given {
        name: String,
        #[serde(rename = "type")]
        type_name: String,
    }
    let given: Vec<Given> =
        serde_json::from_slice(json).map_err(|e| invalid(format!("the schema is no JSON list: {e}")))?;
    let typed = |g: Given| column_type(&g.type_name).map(|t| (g.name, t)).map_err(invalid);
    given.into_iter().map(typed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_taken_apart() {
        let body = b"preamble\r\n--x\r\nContent-Disposition: form-data; name=\"schema\"\r\n\r\n[{\"name\":\"a\",\"type\":\"SYMBOL\"}]\r\n--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"t.csv\"\r\nContent-Type: text/csv\r\n\r\na\r\n1\r\n\r\n--x--\r\n";
        let form = Form::parse(body, &boundary("multipart/form-data; charset=utf-8; boundary=\"x\"").unwrap()).unwrap();
        assert_eq!(&body[form.data], b"a\r\n1\r\n");
        assert_eq!(
            (form.file_name.as_deref(), form.schema),
            (Some("t.csv"), vec![("a".to_owned(), ColumnType::Symbol)])
        );
        for (head, expected) in [
            ("name=\"data\"; filename=\"a;b.csv\"", Some("a;b.csv")),
            ("FILENAME=t.csv ; name=data", Some("t.csv")),
            ("name=\"data\"; filename=\"a\\\"b=c\"", Some("a\"b=c")),
            ("name=\"filename=x\"", None),
            ("name=data; filename", None),
        ] {
            let head = format!("X: y\r\nContent-Disposition: form-data; {head}\r\n");
            assert_eq!(attribute(&head, "filename").as_deref(), expected, "{head}");
        }
        let decimal = schema(br#"[{"name":"d","type":"decimal(10, 2)","pattern":"x"}]"#).unwrap();
        assert_eq!(decimal[0].1, ColumnType::Decimal { precision: 10, scale: 2 });
        assert!(schema(br#"[{"name":"d","type":"LONG256"}]"#).is_err() && schema(b"{}").is_err());
        assert!(boundary("text/csv").is_none() && boundary("application/x-www-form-urlencoded; a=b").is_none());
        for broken in [&b""[..], b"--x", b"--x\r\n\r\nno end", b"--x\r\n\r\nno name\r\n--x--"] {
            assert!(Form::parse(broken, "x").is_err());
        }
    }
}
