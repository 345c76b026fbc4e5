//! Parquet files from outside: read with upstream's reader, whose claims and panics are bounded here.
//!
//! The crate `parquet` (59.3) allocates sizes that a file only claims: the row groups of a footer, the pages of an
//! offset index, the uncompressed size of a page, the entries of a dictionary. It recurses into nested columns without
//! a limit and panics at some damaged files. So [`thrift`] walks the structures of a file first, [`checks`] refuses
//! claims that cannot be true, [`reader`] applies both before upstream reads the same bytes, and [`guard`] turns a panic
//! into an error. [`format`] is the format that uses them.

mod checks;
mod format;
mod guard;
mod reader;
mod thrift;

pub(super) use format::BoundedParquet;
pub(super) use guard::GuardsFiles;
