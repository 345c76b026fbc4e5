//! Names as written in the statement.

use crate::Span;
use std::fmt;

/// A name with one part.
#[derive(Clone, PartialEq, Eq)]
pub struct Ident {
    /// Name without quotes, in the original spelling.
    pub value: String,
    /// Quotes around the name, if any.
    pub quote: Option<Quote>,
    /// Position in the statement text.
    pub span: Span,
}

/// Quotes around a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quote {
    /// `"name"`.
    Double,
    /// `` `name` ``.
    Backtick,
    /// `'name'`, at positions where only a name is allowed.
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

/// A name with one or more parts, such as `schema.table`; never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// The parts, outermost first.
    pub parts: Vec<Ident>,
    /// Position in the statement text.
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
