//! Options of the parser of line protocol.

use tidalite_types::{EpochUnit, TimeUnit};

#[derive(Clone, Debug)]
pub struct LineOptions {
    /// The unit of timestamps without a suffix at line ends, and of integer fields for the designated timestamp.
    pub timestamp_unit: EpochUnit,
    /// The unit of the designated timestamp of tables that lines create.
    ///
    /// `None`: microseconds, unless a suffix or `timestamp_unit` states nanoseconds.
    pub new_table_unit: Option<TimeUnit>,
    /// True if NaN means a missing value and becomes NULL.
    pub nan_is_null: bool,
    /// Permits wider types within a batch, for example from LONG to DOUBLE.
    ///
    /// If false, a value whose type differs from that of the first value is an error of its line.
    pub widens: bool,
    /// Largest line in bytes, including its end.
    pub line_bytes_max: usize,
    /// Memory of predictions kept from batch to batch; beyond it, [`LineParser::take`](super::LineParser::take) drops
    /// them.
    pub cache_bytes_max: usize,
    /// Number of lines after which the tags of lines are learned as a whole, which pays only if they are repeated: not
    /// in short requests.
    pub series_after_lines: u32,
    /// Seed of this parser's hash tables, so that input cannot be crafted to collide.
    pub seed: u64,
    /// False disables all fast paths, for tests. The results are the same.
    pub predict: bool,
}

impl Default for LineOptions {
    fn default() -> LineOptions {
        LineOptions {
            timestamp_unit: EpochUnit::Unstated,
            new_table_unit: None,
            nan_is_null: true,
            widens: true,
            line_bytes_max: 8 << 20,
            cache_bytes_max: 16 << 20,
            series_after_lines: 2_048,
            seed: 0,
            predict: true,
        }
    }
}
