//! The syntax in which values are written.

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `long_quotes` puts 64-bit integers in quotes, for readers that have only doubles; `not_finite_quotes` writes
    /// NaN and the infinities as text in quotes instead of null.
    Json {
        long_quotes: bool,
        not_finite_quotes: bool,
    },
    Csv,
    /// For people; NULL is empty.
    Text,
}
