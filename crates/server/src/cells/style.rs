//! The syntax in which values are written.

/// The syntax of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `long_quotes` puts 64-bit integers in quotes, for readers that have only doubles; `not_finite_quotes` writes
    /// NaN and the infinities as strings instead of null.
    Json {
        long_quotes: bool,
        not_finite_quotes: bool,
    },
    Csv,
    /// Text for terminals; NULL is empty.
    Text,
}
