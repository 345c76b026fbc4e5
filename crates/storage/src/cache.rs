//! Blocks of segments in memory, up to a budget.
