//! Plan rewrites, one per file.
//!
//! - On the logical plan before optimization; [`mod@decorrelate`] of sub-queries is the last.
//! - On the optimized plan: [`mod@from_views`] answers from materialized views, [`mod@group`] replaces aggregations,
//!   then [`FirstRows`], [`MergedJoins`], [`MergedWindowJoins`], [`CodedKeys`], [`TotalsOfBlocks`], [`GroupsOfBlocks`],
//!   [`LatestFromEnd`], [`LimitedScans`], [`InOrderOfPieces`] and [`TiesInOrder`].
//! - Tidalite's own clauses, one node per file: [`relations`] finds them; [`sample_by`] with [`fill`], [`latest_on`],
//!   [`time_join`], [`window_join`] and [`using`] plan them; [`mod@turned`] serves [`tail`]; [`physical`]
//!   creates their operators.

mod array_keys;
mod bound_functions;
mod calls;
mod coded_keys;
mod coded_windows;
mod decorrelate;
mod distinct_counts;
mod distinct_groups;
mod distinct_on;
mod equalities;
mod exact_numbers;
mod field_accesses;
mod file_filters;
mod fill;
mod filters_apart;
mod first_rows;
mod from_views;
mod group;
mod groups_of_blocks;
mod in_order;
mod intervals;
mod join_keys;
mod latest_from_end;
mod latest_on;
mod limited_scans;
mod lists;
mod literals;
mod merged_joins;
mod merged_windows;
mod multiset;
mod named_once;
mod nullif;
mod number_types;
mod operators;
mod ordered_aggregates;
mod physical;
mod real_functions;
mod recursive;
mod regex;
mod relations;
mod remove_false_filters;
mod row_values;
mod sample_by;
mod settled;
mod shown;
mod size;
mod spanning_keys;
mod subscripts;
mod tail;
mod ties;
mod time_arithmetic;
mod time_casts;
mod time_choices;
mod time_join;
mod time_order;
mod time_parts;
mod totals;
mod turned;
mod using;
mod window_join;
mod window_keys;

pub(crate) use bound_functions::bound_functions;
pub(crate) use calls::percentiles;
pub(crate) use coded_keys::{CodedKeys, column_of_scan};
pub(crate) use decorrelate::{Unmarked, decorrelated};
pub(crate) use distinct_counts::counts_apart;
pub(crate) use distinct_groups::DistinctGroups;
pub(crate) use equalities::{without_bounds, without_compared_truths, without_equalities};
pub(crate) use exact_numbers::{exact_expr, exact_numbers, with_common_fractions};
pub(crate) use field_accesses::field_accesses;
pub(crate) use file_filters::FiltersOfFiles;
pub(crate) use fill::{Fill, FillSpec};
pub(crate) use filters_apart::FiltersApart;
pub(crate) use first_rows::FirstRows;
pub(crate) use from_views::{Candidate, Definition, aggregated_tables, from_views};
pub(crate) use group::{counts_distinct, grouped};
pub(crate) use groups_of_blocks::GroupsOfBlocks;
pub(crate) use in_order::InOrderOfPieces;
pub(crate) use intervals::{is_fixed_interval, time_ranges};
pub(crate) use join_keys::NameJoinKeys;
pub(crate) use latest_from_end::LatestFromEnd;
pub(crate) use latest_on::latest_on;
pub(crate) use limited_scans::LimitedScans;
pub(crate) use literals::{
    CHOOSING, chosen_texts_alike, constant as constant_of, is_null, text_as, text_as_list, texts_alike, typed_literals,
};
pub(crate) use merged_joins::MergedJoins;
pub(crate) use merged_windows::MergedWindowJoins;
pub(crate) use multiset::numbered_sets;
pub(crate) use named_once::NamedOnce;
pub(crate) use number_types::{
    common_type, compared_type, is_fraction, members_have_fractions, typed_comparison, typed_members, with_doubles,
};
pub(crate) use operators::{ArrayTexts, Operators};
pub(crate) use ordered_aggregates::{in_order_of_time, needs_time};
pub(crate) use physical::Planner;
pub(crate) use recursive::same_fields;
pub(crate) use relations::{TimeRelations, distinct_names, time_of, with_distinct_names, with_time};
pub(crate) use remove_false_filters::RemoveFalseFilters;
pub(crate) use row_values::{check_rows, compared_values, row_values};
pub(crate) use sample_by::{FillValue, SampleBy, Sampling, fixed_buckets, starred};
pub(crate) use settled::Settled;
pub(crate) use shown::shown;
pub(crate) use size::{size, size_of_tree};
pub(crate) use spanning_keys::FilterSpanningKeys;
pub(crate) use subscripts::Subscripts;
pub(crate) use tail::{ROWS_MAX, last_rows, limits_in_time_order};
pub(crate) use ties::TiesInOrder;
pub(crate) use time_casts::counted_in_units;
pub(crate) use time_choices::with_times;
pub(crate) use time_join::{
    Keys, Kind, TimeJoin, TimeJoinColumns, TimeJoinSpec, filters_on_left, key_named, keys_of_condition,
};
pub(crate) use time_order::in_time_order;
pub(crate) use time_parts::TimeParts;
pub(crate) use totals::TotalsOfBlocks;
pub(crate) use window_join::{Bound, WindowJoinColumns, WindowJoinSpec, WindowJoins, behind};
pub(crate) use window_keys::keys_as_columns;

use datafusion::common::{Column, Result as DFResult};
use datafusion::logical_expr::Expr;

/// The name a selected expression goes by.
fn output_name(expr: &Expr, alias: Option<String>) -> Column {
    match (alias, expr) {
        (Some(alias), _) => Column::new_unqualified(alias),
        (None, Expr::Column(column)) => column.clone(),
        (None, other) => Column::new_unqualified(other.schema_name().to_string()),
    }
}

/// What a join by time or window needs of its two inputs: sorted, each once.
fn needed_of_both(mut left: Vec<usize>, mut right: Vec<usize>, keys: Vec<(usize, usize)>) -> Vec<Vec<usize>> {
    left.extend(keys.iter().map(|(l, _)| l));
    right.extend(keys.iter().map(|(_, r)| r));
    for side in [&mut left, &mut right] {
        side.sort_unstable();
        side.dedup();
    }
    vec![left, right]
}

/// The columns that a node of ours gave out as its expressions.
fn columns_of(exprs: Vec<Expr>) -> DFResult<Vec<Column>> {
    let column = |expr: Expr| match expr.unalias_nested().data {
        Expr::Column(column) => Ok(column),
        other => Err(crate::Error::internal(format!("{other} has taken the place of a column")).into()),
    };
    exprs.into_iter().map(column).collect()
}
