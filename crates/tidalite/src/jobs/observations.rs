//! Observations of the jobs about tables and partitions from periodic checks.

use std::collections::HashMap;
use std::time::Instant;
use tidalite_types::{SegmentId, TableId};

/// State of tables with present or former late segments.
#[derive(Debug, Default)]
pub(super) struct Compactions {
    pub(super) tables: HashMap<TableId, Late>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    pub(super) newest: SegmentId,
    /// Time since which it is the newest.
    pub(super) since: Instant,
    pub(super) paused_until: Option<Instant>,
}

/// The tables whose newest row jumped, with the time of the first observation.
#[derive(Debug, Default)]
pub(super) struct Jumps(pub(super) HashMap<TableId, Instant>);

/// State of partitions from periodic checks.
#[derive(Debug, Default)]
pub(super) struct Seals {
    pub(super) partitions: HashMap<(TableId, i64), Partition>,
    pub(super) looked: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Partition {
    /// The newest segment, which every merge changes.
    pub(super) newest: SegmentId,
    pub(super) changed: Instant,
    /// No work until a new segment exists or the pause ends.
    pub(super) is_sealed: bool,
    pub(super) paused_until: Option<Instant>,
}
