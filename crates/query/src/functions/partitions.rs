//! The partitions of a snapshot: what its segments and staged rows fall into.

use std::collections::BTreeMap;
use tidalite_storage::{Run, TableSnapshot};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartitionInfo {
    pub rows: u64,
    pub staged_rows: u64,
    pub segments: usize,
    pub bytes: u64,
    /// Smallest and greatest designated timestamp; `None` in a table without one.
    pub time_range: Option<(i64, i64)>,
}

impl PartitionInfo {
    fn widen(&mut self, range: (i64, i64)) {
        let (min, max) = self.time_range.unwrap_or(range);
        self.time_range = Some((min.min(range.0), max.max(range.1)));
    }
}

/// By the start of the partition's interval.
pub(crate) fn partitions(snapshot: &TableSnapshot) -> BTreeMap<i64, PartitionInfo> {
    let mut found: BTreeMap<i64, PartitionInfo> = BTreeMap::new();
    let has_time = snapshot.schema.designated.is_some();
    for segment in snapshot.segments.iter() {
        let meta = segment.meta();
        let info = found.entry(meta.partition).or_default();
        info.rows += meta.rows - snapshot.mask(segment).map_or(0, |mask| mask.dead() as u64);
        info.segments += 1;
        info.bytes += meta.bytes;
        if has_time {
            info.widen(meta.time_range);
        }
    }
    for run in snapshot.runs.iter() {
        add_run(snapshot, run, &mut found);
    }
    // What has only dead rows is gone, even while its files are not.
    found.retain(|_, info| info.rows > 0);
    found
}

fn add_run(snapshot: &TableSnapshot, run: &Run, found: &mut BTreeMap<i64, PartitionInfo>) {
    let Some(id) = snapshot.schema.designated else {
        let info = found.entry(i64::MIN).or_default();
        info.rows += run.alive_rows() as u64;
        info.staged_rows += run.alive_rows() as u64;
        return;
    };
    let alive: Vec<i64>;
    let times = match &run.dead {
        None => run.timestamps(id),
        Some(mask) => {
            let times = run.timestamps(id).iter().enumerate();
            alive = times.filter(|(row, _)| !mask.is_dead(*row)).map(|(_, ts)| *ts).collect();
            &alive
        }
    };
    let mut from = 0;
    while from < times.len() {
        let (lo, hi) = snapshot.schema.partition(times[from]);
        let is_inside = |ts: &i64| lo <= *ts && (*ts < hi || hi == i64::MAX);
        let count = times[from..].iter().take_while(|ts| is_inside(ts)).count();
        let info = found.entry(lo).or_default();
        info.rows += count as u64;
        info.staged_rows += count as u64;
        times[from..from + count].iter().for_each(|ts| info.widen((*ts, *ts)));
        from += count;
    }
}
