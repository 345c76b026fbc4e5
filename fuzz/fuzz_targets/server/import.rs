//! Stands in for the importer of the database.

use tidalite_ingest::csv::{NumberFormat, TimeFormat};
use tidalite_types::ColumnType;

#[derive(Debug, Default)]
pub struct GivenColumns {
    pub columns: Vec<(String, ColumnType)>,
    pub formats: Vec<(String, TimeFormat)>,
    pub numbers: Vec<(String, NumberFormat)>,
}

impl GivenColumns {
    pub fn push(&mut self, name: &str, column_type: ColumnType, format: Option<&str>) -> Result<(), String> {
        if let Some(format) = format {
            match column_type {
                ColumnType::Timestamp(_) | ColumnType::Date => {
                    self.formats.push((name.to_owned(), TimeFormat::from_text(format)?));
                }
                _ => self.numbers.push((name.to_owned(), NumberFormat::from_text(format)?)),
            }
        }
        self.columns.push((name.to_owned(), column_type));
        Ok(())
    }
}

pub fn column_type(name: &str) -> Result<ColumnType, String> {
    ColumnType::from_sql_name(name).ok_or_else(|| format!("{name:?} is no type"))
}
