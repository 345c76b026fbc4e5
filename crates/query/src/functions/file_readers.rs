//! Table functions that read files. [`crate::engine`] opens the files before a query is bound.

/// A function that reads files of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileReader {
    Csv,
    Parquet,
}

impl FileReader {
    pub const ALL: [FileReader; 2] = [FileReader::Csv, FileReader::Parquet];

    pub fn name(self) -> &'static str {
        match self {
            FileReader::Csv => "read_csv",
            FileReader::Parquet => "read_parquet",
        }
    }

    /// Returns the function of a name.
    pub fn named(name: &str) -> Option<FileReader> {
        FileReader::ALL.into_iter().find(|reader| reader.name() == name)
    }

    /// Returns the function that reads the file at a path, by the end of the name.
    pub fn of_path(path: &str) -> Option<FileReader> {
        let path = path.to_lowercase();
        if path.ends_with(".parquet") {
            return Some(FileReader::Parquet);
        }
        [".csv", ".tsv"].iter().any(|end| path.ends_with(end)).then_some(FileReader::Csv)
    }
}
