//! Bytes from a file, standard input or a URL, decompressed.

use super::args::ImportArgs;
use super::format::Format;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub struct Source {
    /// As it was given.
    pub name: String,
    pub format: Format,
    /// The table name that the file name suggests.
    pub stem: Option<String>,
    /// Bytes of the file before decompression, when that is known.
    pub bytes: Option<u64>,
    /// Bytes read so far, before decompression.
    pub read: Arc<AtomicU64>,
    is_url: bool,
}

pub use tidalite::import::Reader;

impl Source {
    pub fn named(name: &str, asked: &ImportArgs) -> Result<Source, String> {
        let is_url = name.starts_with("http://") || name.starts_with("https://");
        let path = if is_url { name.split(['?', '#']).next().unwrap_or(name) } else { name };
        let format = asked.format.unwrap_or_else(|| Format::from_name(path));
        let stem = Path::new(path).file_name().and_then(|n| n.to_str()).and_then(|n| n.split('.').next());
        let stem = stem.filter(|s| !s.is_empty() && name != "-").map(str::to_owned);
        let bytes = if is_url || name == "-" {
            None
        } else {
            let meta = std::fs::metadata(name).map_err(|e| format!("{name}: could not be read: {e}"))?;
            meta.is_file().then_some(meta.len())
        };
        Ok(Source { name: name.to_owned(), format, stem, bytes, read: Arc::default(), is_url })
    }

    pub fn table(&self, asked: &ImportArgs) -> Result<String, String> {
        let table = asked.table.clone().or_else(|| self.stem.clone());
        table.ok_or_else(|| "which table? give --table".to_owned())
    }

    /// The name as a query reads it.
    pub fn path(&self) -> Result<String, String> {
        if self.is_url {
            return Ok(self.name.clone());
        }
        let path = std::fs::canonicalize(&self.name).map_err(|e| format!("could not be read: {e}"))?;
        Ok(path.display().to_string())
    }

    /// The bytes as they are.
    pub fn open_raw(&self) -> Result<Reader, String> {
        let unreadable = |e: String| format!("could not be read: {e}");
        let raw: Reader = if self.name == "-" {
            Box::new(std::io::stdin())
        } else if self.is_url {
            let agent: ureq::Agent = ureq::Agent::config_builder().build().into();
            let response = agent.get(&self.name).call().map_err(|e| unreadable(e.to_string()))?;
            Box::new(response.into_body().into_reader())
        } else {
            Box::new(File::open(&self.name).map_err(|e| unreadable(e.to_string()))?)
        };
        Ok(Box::new(Counted { inner: raw, read: self.read.clone() }))
    }

    /// The bytes, decompressed.
    pub fn open(&self) -> Result<Reader, String> {
        let unreadable = |e: String| format!("could not be read: {e}");
        let mut counted = self.open_raw()?;
        let mut magic = Vec::with_capacity(2);
        (&mut counted).take(2).read_to_end(&mut magic).map_err(|e| unreadable(e.to_string()))?;
        let is_gzip = magic == [0x1f, 0x8b];
        let whole: Chain<Cursor<Vec<u8>>, Reader> = Cursor::new(magic).chain(counted);
        Ok(if is_gzip {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 20, whole)))
        } else {
            Box::new(whole)
        })
    }
}

struct Counted {
    inner: Reader,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_file_is() {
        for (name, format) in [
            ("a.csv", Format::Csv),
            ("a.csv.gz", Format::Csv),
            ("a.csv.zst", Format::Csv),
            ("a", Format::Csv),
            ("a.ilp", Format::Lines),
            ("a.b.lp.gz", Format::Lines),
            ("a.parquet", Format::Parquet),
        ] {
            assert_eq!(Format::from_name(name), format, "{name}");
        }
    }
}
