//! Names of types.

use super::{Ident, ObjectName};
use crate::Span;

/// A type as it is written: `DECIMAL(18, 3)`, `TIMESTAMP WITH TIME ZONE`, `DOUBLE[][]`, `GEOHASH(4c)`.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    /// The name; one of several words, such as `DOUBLE PRECISION`, has a space between them.
    pub name: ObjectName,
    /// What stands in parentheses behind it.
    pub args: Vec<TypeArg>,
    /// WITH or WITHOUT TIME ZONE.
    pub with_time_zone: Option<bool>,
    /// One for each pair of brackets, with the length between them.
    pub dimensions: Vec<Option<String>>,
    /// Where it stands.
    pub span: Span,
}

/// Something in the parentheses behind the name of a type.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeArg {
    /// A number, with the letter behind it: the `4c` of `GEOHASH(4c)`.
    Number {
        /// The digits.
        digits: String,
        /// The letter.
        unit: Option<Ident>,
    },
    /// A text.
    Text(String),
    /// A type, with the name before it as in `STRUCT(a INT)`.
    Type {
        /// The name of the field.
        name: Option<Ident>,
        /// The type.
        data_type: TypeName,
    },
}
