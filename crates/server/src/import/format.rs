//! The format of a file.

/// The format of the rows of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Lines,
    Parquet,
}

impl Format {
    /// Returns the format of a value of `--format`.
    pub fn from_word(word: &str) -> Format {
        match word {
            "parquet" => Format::Parquet,
            "lines" => Format::Lines,
            _ => Format::Csv,
        }
    }

    /// Returns the format of a file name; compression suffixes are ignored.
    pub fn from_name(name: &str) -> Format {
        let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("parquet") => Format::Parquet,
            Some("ilp" | "lp" | "line" | "lines") => Format::Lines,
            _ => Format::Csv,
        }
    }
}
