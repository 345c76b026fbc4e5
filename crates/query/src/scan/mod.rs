//! Reads a table: which blocks and runs can hold wanted rows, and their columns as record batches.
//!
//! In: a snapshot and what the planner wants of it. Out: an operator of DataFusion's plan whose leaf is described by
//! [`spec::ScanSpec`] alone; handles to the snapshot are beside it, so that another process could open its own.
//!
//! Reading order: [`predicate`] conditions it answers, [`several`] those on several columns; [`spec`]; [`prune`] what is left
//! to read; [`filters`] which rows of a piece are wanted, [`bound`] which can still be among the first; [`read`] one piece,
//! [`totals`] what it comes to, [`groups`] by keys; [`queue`] in which order pieces are read; [`statistics`] what footers
//! tell of them; [`exec`] the operator; [`table`] the table as DataFusion's planner sees it.

pub(crate) mod bound;
pub(crate) mod exec;
pub(crate) mod filters;
pub(crate) mod groups;
pub(crate) mod place;
pub(crate) mod predicate;
pub(crate) mod prune;
mod queue;
pub(crate) mod read;
pub(crate) mod several;
pub(crate) mod spec;
mod statistics;
pub(crate) mod table;
mod totals;
pub(crate) mod view;
