//! Pure loops over slices: no files, no tables, no errors. A fast loop has a reference implementation.
//!
//! [`min_max()`] bounds; [`sum`] sums; [`sort`] the order of timestamps; [`gather()`] rows by number, [`select()`] rows
//! by mask; [`merge()`] sorted runs; [`bitpack`] integers in few bits, [`in_range`] comparisons of packed integers,
//! [`widths`] bit widths; [`delta`] differences; [`group`] rows by key; [`program`] conditions on several columns;
//! [`alp`], [`alp_rd`] floating point as integers; [`fsst`] text as symbols; [`mod@find`] bytes; [`decimals`] floating
//! point as text; [`mod@prefetch`] and [`turns`] hints.
//!
//! Unsafe code is used for instructions that not every processor has (chosen at run time in [`int`]), for memory that
//! is written before it is read, for conversions of numbers that are known to fit, and for system calls in [`turns`].
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod alp;
pub mod alp_rd;
pub mod bitpack;
pub mod decimals;
pub mod delta;
pub mod find;
pub mod fsst;
pub mod gather;
pub mod group;
pub mod in_range;
pub mod int;
pub mod merge;
pub mod min_max;
pub mod narrow;
pub mod prefetch;
pub mod program;
pub mod select;
pub mod sort;
pub mod sum;
pub mod turns;
pub mod widths;

pub use bitpack::{LINE_BYTES, Line, Unpacker, line_count, pack, unpack_distances, unpack_narrow};
pub use decimals::{DECIMAL_BYTES, short_decimal, short_decimals};
pub use delta::{deltas, extend_steps, sum_up};
pub use find::{position_in_32, position_in_64};
pub use gather::{gather, gather_bits, gather_slice, gather_values, rows_set};
pub use group::{
    DigitWords, Digits, Fold, FoldInput, FoldValues, Folds, GroupKey, GroupPlanes, GroupTable, Pick, add_codes,
    by_partition, extend_bytes, float_of_order, order_of_float, run_ends,
};
pub use in_range::{
    Comparable, Mask, RANGES_MAX, f32_in_range, f64_in_range, packed_in_range, packed_in_ranges, values_in_range,
};
pub use int::Int;
#[cfg(target_arch = "x86_64")]
pub use int::{has_avx2, has_avx512};
pub use merge::{Span, Stretch, merge, merge_columns, merge_many, merge_slices};
pub use min_max::{min_max, min_max_f32, min_max_f64};
pub use narrow::{narrow_to_1, narrow_to_2, narrow_to_4};
pub use prefetch::{prefetch, prefetch_slice};
pub use select::{count_picked, keep_bits, picked, picked_numbers, select, select_bits};
pub use sort::{is_sorted, sort_permutation};
pub use sum::{sum_centered_products, sum_floats, sum_ints};
pub use turns::{ask_for_long_turns, ask_for_short_turns, lower_priority};
pub use widths::{WidthCounts, width_counts, width_of};
