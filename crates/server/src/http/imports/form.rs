//! The form in which QuestDB's users upload: multipart/form-data with a part `data`, perhaps one `schema` before it.

use serde::Deserialize;
use tidalite::import::{GivenColumns, column_type};
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
    pub schema: GivenColumns,
    /// Content type of the part `data`.
    pub content_type: Option<String>,
}

/// Returns the character set of a content type.
pub fn charset(content_type: &str) -> Option<&str> {
    let mut parameters = content_type.split(';').skip(1);
    let value = parameters.find_map(|p| {
        let (name, value) = p.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
    });
    value.filter(|value| !value.is_empty())
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
                    form.content_type = header(&names, "content-type").map(|value| value.trim().to_owned());
                    has_data = true;
                }
                Some("schema") => form.schema = schema(&body[start..end])?,
                _ => {}
            }
        }
        if has_data { Ok(form) } else { Err(invalid("the form has no part named data")) }
    }
}

/// Returns the value of a header of a part.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.split_once(':').filter(|(n, _)| n.trim().eq_ignore_ascii_case(name)))
        .map(|(_, v)| v)
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

/// `[{"name": "ts", "type": "TIMESTAMP", "pattern": "dd/MM/yyyy"}]`; a member that has no meaning here is refused.
fn schema(json: &[u8]) -> Result<GivenColumns> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Given {
        name: String,
        #[serde(rename = "type")]
        type_name: String,
        #[serde(default)]
        pattern: Option<String>,
        /// Non-ASCII text in QuestDB; without effect here, because all text is UTF-8.
        #[serde(default, rename = "utf8")]
        _utf8: Option<bool>,
    }
    let given: Vec<Given> =
        serde_json::from_slice(json).map_err(|e| invalid(format!("the schema is no JSON list: {e}")))?;
    let mut out = GivenColumns::default();
    for Given { name, type_name, pattern, .. } in given {
        let column_type = column_type(&type_name).map_err(invalid)?;
        out.push(&name, column_type, pattern.as_deref())
            .map_err(|e| invalid(format!("the schema: column \"{name}\": {e}")))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidalite::types::ColumnType;

    #[test]
    fn forms_are_taken_apart() {
        let body = b"preamble\r\n--x\r\nContent-Disposition: form-data; name=\"schema\"\r\n\r\n[{\"name\":\"a\",\"type\":\"SYMBOL\"}]\r\n--x\r\nContent-Disposition: form-data; name=\"data\"; filename=\"t.csv\"\r\nContent-Type: text/csv\r\n\r\na\r\n1\r\n\r\n--x--\r\n";
        let form = Form::parse(body, &boundary("multipart/form-data; charset=utf-8; boundary=\"x\"").unwrap()).unwrap();
        assert_eq!(&body[form.data], b"a\r\n1\r\n");
        assert_eq!(
            (form.file_name.as_deref(), form.schema.columns, form.content_type.as_deref()),
            (Some("t.csv"), vec![("a".to_owned(), ColumnType::Symbol)], Some("text/csv"))
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
        let found =
            schema(br#"[{"name":"d","type":"decimal(10, 2)"},{"name":"t","type":"DATE","pattern":"dd/MM/yyyy"}]"#)
                .unwrap();
        assert_eq!(found.columns[0].1, ColumnType::Decimal { precision: 10, scale: 2 });
        assert_eq!(found.formats[0].1.to_string(), "dd/MM/yyyy");
        for bad in [r#"[{"name":"d","type":"DATE","pattern":"x"}]"#, r#"[{"name":"d","type":"DATE","form":"x"}]"#] {
            assert!(schema(bad.as_bytes()).is_err(), "{bad}");
        }
        assert_eq!(charset("text/csv; header=present; Charset=\"utf-16\""), Some("utf-16"));
        assert_eq!(charset("text/csv"), None);
        assert!(schema(br#"[{"name":"d","type":"LONG256"}]"#).is_err() && schema(b"{}").is_err());
        assert!(boundary("text/csv").is_none() && boundary("application/x-www-form-urlencoded; a=b").is_none());
        for broken in [&b""[..], b"--x", b"--x\r\n\r\nno end", b"--x\r\n\r\nno name\r\n--x--"] {
            assert!(Form::parse(broken, "x").is_err());
        }
    }
}
