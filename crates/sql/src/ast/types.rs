//! Type names.

use super::{Ident, ObjectName};
use crate::Span;

/// A type as it is written: `DECIMAL(18, 3)`, `TIMESTAMP WITH TIME ZONE`, `DOUBLE[][]`, `GEOHASH(4c)`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    /// Type name; the words of a longer name such as `DOUBLE PRECISION` are separated by one space.
    pub name: ObjectName,
    /// Content of the parentheses after the name.
    pub args: Vec<TypeArg>,
    /// WITH or WITHOUT TIME ZONE.
    pub with_time_zone: Option<bool>,
    /// One element per pair of brackets: the length between the brackets, if given.
    pub dimensions: Vec<Option<String>>,
    /// Position in the statement text.
    pub span: Span,
}

/// An argument of a type name.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeArg {
    /// A number with an optional letter: the `4c` of `GEOHASH(4c)`.
    Number {
        /// The digits.
        digits: String,
        /// The letter.
        unit: Option<Ident>,
    },
    /// A string.
    Text(String),
    /// A type with an optional field name, as in `STRUCT(a INT)`.
    Type {
        /// The name of the field.
        name: Option<Ident>,
        /// The type.
        data_type: TypeName,
    },
}
