//! The parameters of a request, from its URL and from a form.

use crate::logging::cut;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// `a=1&b=x%20y`. Of a name given twice the first counts.
    ///
    /// # Errors
    /// When an escape is not two hex digits, or the result is not UTF-8.
    pub fn parse(text: &str) -> Result<Params, String> {
        let mut params = Params::default();
        params.add(text)?;
        Ok(params)
    }

    /// # Errors
    /// As [`Params::parse`].
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for pair in text.split('&').filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            self.0.push((decoded(name)?, decoded(value)?));
        }
        Ok(())
    }

    /// Adds the members of a JSON object: strings by their value, null not at all, other values as JSON text.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn add_json(&mut self, text: &str) -> Result<(), String> {
        let refused = |e| format!("the request body is not a JSON object: {e}");
        // Values stay text: a tree would take thirty times the memory of the body, and recursion.
        let object: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(refused)?;
        for (name, value) in object {
            let value = match value.get() {
                "null" => continue,
                text if text.starts_with('"') => serde_json::from_str(text).map_err(refused)?,
                other => other.to_owned(),
            };
            self.0.push((name, value));
        }
        Ok(())
    }

    /// A parameter that needs no decoding.
    pub fn add_plain(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Names and values, as they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// True for `name=true`, and 1, t, yes as other clients write it.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|v| matches!(v.to_ascii_lowercase().as_str(), "true" | "t" | "1" | "yes"))
    }
}

fn decoded(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'+' => out.push(b' '),
            b'%' => {
                let hex = bytes.get(i + 1..i + 3).filter(|h| h.iter().all(u8::is_ascii_hexdigit));
                let hex = hex.and_then(|h| std::str::from_utf8(h).ok());
                let byte = hex.and_then(|h| u8::from_str_radix(h, 16).ok());
                out.push(byte.ok_or_else(|| format!("{:?} has a % that no two hex digits follow", cut(text)))?);
                i += 2;
            }
            byte => out.push(byte),
        }
        i += 1;
    }
    String::from_utf8(out).map_err(|_| format!("{:?} is not UTF-8 when decoded", cut(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_json_object() {
        let mut params = Params::default();
        params
            .add_json(r#"{"query":"select 'ä' + $1","limit":10,"count":true,"params":[["long","5"]],"cols":null}"#)
            .unwrap();
        assert_eq!(params.get("query"), Some("select 'ä' + $1"));
        assert_eq!((params.get("limit"), params.get("cols")), (Some("10"), None));
        assert_eq!((params.is_on("count"), params.get("params")), (true, Some("[[\"long\",\"5\"]]")));
        let nested = format!("{{\"query\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        params.add_json(&nested).unwrap();
        assert!(params.add_json(&nested[..1_000_000]).is_err());
        assert!(params.add_json("[1]").is_err() && params.add_json("select 1").is_err());
    }

    #[test]
    fn escapes_and_plus_signs_are_read() {
        let params = Params::parse("query=select%20'%C3%A4'+%2B+1&limit=1%2C2&nm&count=true&count=false").unwrap();
        assert_eq!(params.get("query"), Some("select 'ä' + 1"));
        assert_eq!(params.get("limit"), Some("1,2"));
        assert_eq!(params.get("nm"), Some(""));
        assert!(params.is_on("count") && !params.is_on("nm") && !params.is_on("nosuch"));
        assert!(Params::parse("a=%2").is_err() && Params::parse("a=%zz").is_err() && Params::parse("a=%ff").is_err());
        assert!(Params::parse("a=%+1").is_err());
    }
}
