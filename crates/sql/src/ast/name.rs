//! Names as they are written.

use crate::Span;
use std::fmt;

/// A name of one part.
#[derive(Clone, PartialEq, Eq)]
pub struct Ident {
    /// The name without its quotes, in its own spelling.
    pub value: String,
    /// The quotes it is written in.
    pub quote: Option<Quote>,
    /// Where it stands.
    pub span: Span,
}

/// Quotes around a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote {
    /// `"name"`.
    Double,
    /// `` `name` ``.
    Backtick,
    /// `'name'`, where only a name can stand.
    Single,
}

impl fmt::Debug for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quote {
            None => f.write_str(&self.value),
            Some(_) => write!(f, "{:?}", self.value),
        }
    }
}

/// A name of one or more parts, such as `schema.table`; never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// The parts, outermost first.
    pub parts: Vec<Ident>,
    /// Where it stands.
    pub span: Span,
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, part) in self.parts.iter().enumerate() {
            if n > 0 {
                f.write_str(".")?;
            }
            part.fmt(f)?;
        }
        Ok(())
    }
}
