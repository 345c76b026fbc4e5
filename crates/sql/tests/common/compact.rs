//! Compact syntax trees: the `Debug` output without spans and without empty fields.

use std::fmt::Debug;

/// Formats a tree without spans, `None`, empty lists and `false`.
///
/// `Some(x)` and a wrapper with a single field become `x`.
pub fn compact(tree: &impl Debug) -> String {
    let text = format!("{tree:?}");
    let mut reader = Reader { rest: &text };
    reader.value().unwrap_or_default()
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// Reads a value; returns `None` if the value is empty.
    fn value(&mut self) -> Option<String> {
        let name = self.atom();
        match self.rest.chars().next() {
            Some('(') => {
                let items = self.items(')');
                match (name.as_str(), items.len()) {
                    ("Some" | "Expr", 1) => items.into_iter().next(),
                    ("Some", 0) => Some("false".to_owned()),
                    _ => Some(format!("{name}({})", items.join(", "))),
                }
            }
            Some('[') => {
                let items = self.items(']');
                (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
            }
            Some(' ') if self.rest.starts_with(" {") => {
                self.rest = &self.rest[1..];
                let fields = self.items('}');
                Some(match (name.as_str(), fields.len()) {
                    ("Expr" | "Relation" | "TableRef" | "Query", 1) => fields[0].split_once(": ")?.1.to_owned(),
                    _ => format!("{name}{{{}}}", fields.join(", ")),
                })
            }
            _ => (!matches!(name.as_str(), "None" | "false")).then_some(name),
        }
    }

    /// Reads the items between brackets, from the opening bracket.
    fn items(&mut self, close: char) -> Vec<String> {
        self.rest = self.rest[1..].trim_start();
        let mut items = Vec::new();
        while !self.rest.starts_with(close) {
            let field = if close == '}' { self.field() } else { None };
            let value = self.value();
            let is_place = field.as_deref() == Some("span");
            if let Some(value) = value.filter(|_| !is_place) {
                items.push(field.map_or(value.clone(), |field| format!("{field}: {value}")));
            }
            self.rest = self.rest.trim_start_matches(',').trim_start();
        }
        self.rest = &self.rest[1..];
        items
    }

    fn field(&mut self) -> Option<String> {
        let (field, rest) = self.rest.split_once(": ")?;
        let field = field.to_owned();
        self.rest = rest;
        Some(field)
    }

    /// Reads a word, a number, a span or a quoted string.
    fn atom(&mut self) -> String {
        if self.rest.starts_with('"') {
            let mut escaped = false;
            let end = self.rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let (text, rest) = self.rest.split_at(end.map_or(self.rest.len(), |end| end + 2));
            let text = text.to_owned();
            self.rest = rest;
            return text;
        }
        let end = self.rest.find([',', ')', ']', '}', '(', '[', ' ']).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        let atom = atom.to_owned();
        self.rest = rest;
        atom
    }
}
