//! Selects the text columns that become SYMBOLs.

use crate::{Error, Result};
use arrow::datatypes::{DataType, Schema};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Symbols {
    /// Columns that are dictionaries (categoricals) in the frame.
    #[default]
    Auto,
    /// Every text column.
    All,
    None,
    Named(Vec<String>),
}

impl Symbols {
    /// Returns true for each column of the frame that becomes a SYMBOL.
    ///
    /// # Errors
    /// Fails if a named column does not exist, or is not text.
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

/// Returns true if values are text, with or without a dictionary.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        DataType::RunEndEncoded(_, values) => is_text(values.data_type()),
        _ => false,
    }
}
