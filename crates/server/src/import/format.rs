//! The format of a file.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    Lines,
    Parquet,
}

impl Format {
    pub fn of_word(word: &str) -> Format {
        match word {
            "parquet" => Format::Parquet,
            "lines" => Format::Lines,
            _ => Format::Csv,
        }
    }

    pub fn of_name(name: &str) -> Format {
        let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        match name.rsplit_once('.').map(|(_, end)| end) {
            Some("parquet") => Format::Parquet,
            Some("ilp" | "lp" | "line" | "lines") => Format::Lines,
            _ => Format::Csv,
        }
    }
}
