//! Which columns of text become SYMBOLs.

use crate::{Error, Result};
use arrow::datatypes::{DataType, Schema};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Symbols {
    /// Those that are dictionaries (categoricals) in the frame.
    #[default]
    Auto,
    /// Every column of text.
    All,
    None,
    Named(Vec<String>),
}

impl Symbols {
    /// For each column of the frame whether it is one.
    ///
    /// # Errors
    /// When a column is named that the frame has not, or that is no text.
    pub fn choose(&self, schema: &Schema) -> Result<Vec<bool>> {
        if let Symbols::Named(names) = self {
            for name in names {
                let Ok(field) = schema.field_with_name(name) else {
                    return Err(Error::of_column(name, "it is named in symbols, but the frame does not have it"));
                };
                if !is_text(field.data_type()) && *field.data_type() != DataType::Null {
                    let message = format!("a SYMBOL is text, this is {}", field.data_type());
                    return Err(Error::of_column(name, message));
                }
            }
        }
        let is_one = |field: &arrow::datatypes::Field| match self {
            Symbols::Auto => matches!(field.data_type(), DataType::Dictionary(..)) && is_text(field.data_type()),
            Symbols::All => is_text(field.data_type()),
            Symbols::None => false,
            Symbols::Named(names) => names.iter().any(|name| name == field.name()),
        };
        Ok(schema.fields().iter().map(|field| is_one(field)).collect())
    }
}

/// Whether values are text, in a dictionary or not.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        DataType::RunEndEncoded(_, values) => is_text(values.data_type()),
        _ => false,
    }
}
