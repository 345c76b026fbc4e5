//! The immutable file of a partition's rows: every column in blocks, a footer, a checksum per block.
//!
//! Reading order: [`buffer`] aligned memory; [`format`] the bytes; [`encoding`] one column block, [`selection`]
//! selected rows; [`writer`]; [`store`] shared state of all segments; `asked`, `set_lookup` and auxiliary indexes for
//! hot blocks: [`present`] for symbols, `rows_by_value` for numbers, both with `rows_by_code`; [`beside`], the
//! co-occurrence index of symbols; [`reader`], [`vectors`] reads by vector, [`few_rows`] reads of a few rows, [`zones`]
//! of many blocks; [`verify`] all checks, including those that reading does not need; [`salvage`] intact parts of a
//! damaged file.

mod asked;
pub mod beside;
pub mod buffer;
pub mod encoding;
pub mod few_rows;
pub mod format;
pub mod present;
pub mod reader;
mod rows_by_code;
mod rows_by_value;
pub mod salvage;
pub mod selection;
mod set_lookup;
pub mod store;
pub mod text_rows;
pub mod vectors;
pub mod verify;
pub mod writer;
pub mod zones;

pub use beside::CodesBeside;
pub use encoding::choice::Effort;
pub use encoding::compare::{Comparison, Constant};
pub use encoding::interval::Interval;
pub use encoding::retain::retain_rows;
pub use encoding::totals::Totals;
pub use encoding::{EncodedBlock, encode, to_column};
pub use few_rows::FewRows;
pub use present::CodesPresent;
pub use reader::{Segment, SegmentMeta};
pub use selection::Selection;
pub use set_lookup::{CODES_MAX, few_codes};
pub use store::{SegmentStore, StoreStats};
pub use text_rows::{TextRows, TextsOf};
pub use vectors::{DigitVectors, OpenBlock, Vectors};
pub use writer::{BlockSource, SegmentSummary, SegmentWriter};
pub use zones::{ColumnZones, Zones};

#[cfg(test)]
mod tests;
