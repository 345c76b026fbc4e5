//! Instants, and the order of day and month.

/// An instant: seconds since 1970-01-01 UTC, and nanoseconds of that second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::csv) struct Instant {
    pub seconds: i64,
    pub nanos: i64,
}

/// Position of the day in dates such as `01/02/2024`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DateOrder {
    /// `31/01/2024`
    DayFirst,
    /// `01/31/2024`
    MonthFirst,
}
