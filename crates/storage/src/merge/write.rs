//! Builds and writes segments on several threads.
//!
//! Input: plans of segments with their columns. Output: the segments in their files, synced, with the columns in order.
//! A task is one column of one segment. Threads take the next task from one counter, so that they finish at the same
//! time. A thread that has built the next block to be written writes it and all completed blocks after it.
//!
//! Invariant: the bytes of the files do not depend on the number of threads. The size of blocks built ahead is limited.

use super::build::Builder;
use super::new_rows::{NewInOrder, NewRows};
use super::old_rows::OldRows;
use super::pieces::BlockPlan;
use super::threads::Threads;
use crate::cache::lock;
use crate::segment::{Effort, EncodedBlock, SegmentStore, SegmentSummary, SegmentWriter, encode};
use crate::{Error, Result};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use tidalite_types::{BLOCK_ROWS, ColumnId, ColumnType, ErrorKind};

/// Destination and threads of the segments.
pub(super) struct Writing<'a> {
    pub store: &'a Arc<SegmentStore>,
    pub threads: Threads<'a>,
    pub effort: Effort,
    pub is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Writing<'_> {
    pub fn check_cancelled(&self) -> Result<()> {
        let error = || Error::new(ErrorKind::Unavailable, "it was given up for now".to_owned());
        if (self.is_cancelled)() { Err(error()) } else { Ok(()) }
    }
}

#[derive(Debug)]
pub(super) struct SegmentPlan<'a> {
    pub path: PathBuf,
    pub columns: Vec<(ColumnId, ColumnType)>,
    pub blocks: Vec<BlockPlan>,
    pub old: &'a OldRows,
    /// The new rows if they are reordered all at once, computed for all columns by the first column that is built.
    pub new_in_order: OnceLock<Option<NewInOrder>>,
}

/// Limit of encoded bytes that wait to be written.
const AHEAD_BYTES_MAX: usize = 64 << 20;
/// Number of values for which a thread pays.
const THREAD_VALUES_MIN: usize = 1 << 18;

/// Writes the segments. After an error some of their files may exist.
pub(super) fn write_segments(
    plans: &[SegmentPlan<'_>],
    new: &NewRows,
    writing: &Writing<'_>,
) -> Result<Vec<SegmentSummary>> {
    let values: usize = plans.iter().map(|p| p.columns.len() * p.blocks.iter().map(|b| b.rows).sum::<usize>()).sum();
    let first_tasks = plans.iter().scan(0, |at, p| Some(std::mem::replace(at, *at + p.columns.len())));
    let output = Output {
        writing,
        plans,
        new,
        first_tasks: first_tasks.collect(),
        task_count: plans.iter().map(|p| p.columns.len()).sum(),
        next_task: AtomicUsize::new(0),
        queue: Mutex::default(),
        changed: Condvar::new(),
        files: Mutex::default(),
    };
    writing.threads.run(values / THREAD_VALUES_MIN, &|| output.work());
    let queue = output.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    let files = output.files.into_inner().unwrap_or_else(PoisonError::into_inner);
    queue.failure.map_or(Ok(files.finished), Err)
}

struct Output<'a> {
    writing: &'a Writing<'a>,
    plans: &'a [SegmentPlan<'a>],
    new: &'a NewRows,
    /// The task number of the first column of each segment.
    first_tasks: Vec<usize>,
    task_count: usize,
    next_task: AtomicUsize,
    queue: Mutex<Queue>,
    /// Signalled if the due task changes or memory becomes available.
    changed: Condvar,
    /// Locked by the writing thread, before `queue` and never while holding it.
    files: Mutex<Files>,
}

#[derive(Default)]
struct Queue {
    /// The task whose blocks are written next.
    due: usize,
    /// Built blocks that were not yet taken by the writer, by task.
    ready: BTreeMap<usize, Ready>,
    bytes: usize,
    is_being_written: bool,
    failure: Option<Error>,
}

#[derive(Default)]
struct Ready {
    blocks: VecDeque<EncodedBlock>,
    is_complete: bool,
}

#[derive(Default)]
struct Files {
    open: Option<SegmentWriter>,
    finished: Vec<SegmentSummary>,
}

impl Output<'_> {
    fn work(&self) {
        // Other threads must not wait for the blocks of a thread that panicked.
        let guard = StopOnPanic(self);
        let mut builder = Builder::default();
        loop {
            let task = self.next_task.fetch_add(1, Ordering::Relaxed);
            if task >= self.task_count {
                break;
            }
            match self.build(task, &mut builder) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.fail(error);
                    break;
                }
            }
        }
        drop(guard);
    }

    /// Returns the segment of a task and the index of its column.
    fn place(&self, task: usize) -> (usize, usize) {
        let segment = self.first_tasks.partition_point(|&first| first <= task) - 1;
        (segment, task - self.first_tasks[segment])
    }

    /// Builds a column of a segment; returns false if another thread failed.
    fn build(&self, task: usize, builder: &mut Builder) -> Result<bool> {
        let (segment, column) = self.place(task);
        let plan = &self.plans[segment];
        self.writing.check_cancelled()?;
        let (id, column_type) = plan.columns[column];
        let new_in_order = plan.new_in_order.get_or_init(|| self.new.deal(&plan.blocks));
        let dealt = new_in_order.as_ref().and_then(|rows| builder.dealt((id, column_type), self.new, rows));
        let rows: usize = plan.blocks.iter().map(|block| block.rows).sum();
        for (at, block) in plan.blocks.iter().enumerate() {
            let (column, effort) = ((id, column_type), self.writing.effort);
            let encoded = match &dealt {
                Some(all) if all.column.len() == rows => {
                    encode(column_type, &all.column, at * BLOCK_ROWS, block.rows, effort)
                }
                dealt => builder.block(column, plan.old, self.new, (block, dealt.as_ref()), effort)?,
            };
            // Commits with waiting clients should not wait for the rest of this thread's time slice.
            std::thread::yield_now();
            if !self.hand_over(task, encoded, at + 1 == plan.blocks.len())? {
                return Ok(false);
            }
        }
        dealt.into_iter().for_each(|dealt| builder.put_dealt_back(dealt));
        Ok(true)
    }

    fn hand_over(&self, task: usize, block: EncodedBlock, is_last: bool) -> Result<bool> {
        let mut queue = lock(&self.queue);
        // The due task never waits, so one thread always makes progress.
        while queue.failure.is_none() && task != queue.due && queue.bytes > AHEAD_BYTES_MAX {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.failure.is_some() {
            return Ok(false);
        }
        queue.bytes += block.bytes.len();
        let ready = queue.ready.entry(task).or_default();
        ready.blocks.push_back(block);
        ready.is_complete = is_last;
        if task == queue.due && !queue.is_being_written {
            queue.is_being_written = true;
            self.write(queue)?;
        }
        Ok(true)
    }

    /// Writes due blocks until the next block is missing.
    fn write<'q>(&'q self, mut queue: MutexGuard<'q, Queue>) -> Result<()> {
        loop {
            let due = queue.due;
            let Ready { blocks, is_complete } = queue.ready.remove(&due).unwrap_or_default();
            if blocks.is_empty() {
                queue.is_being_written = false;
                return Ok(());
            }
            queue.bytes -= blocks.iter().map(|b| b.bytes.len()).sum::<usize>();
            queue.due += usize::from(is_complete);
            drop(queue);
            self.changed.notify_all();
            self.write_blocks(due, &blocks, is_complete)?;
            queue = lock(&self.queue);
        }
    }

    fn write_blocks(&self, task: usize, blocks: &VecDeque<EncodedBlock>, is_complete: bool) -> Result<()> {
        let (segment, column) = self.place(task);
        let plan = &self.plans[segment];
        let mut files = lock(&self.files);
        let mut writer = match files.open.take() {
            Some(writer) => writer,
            None => SegmentWriter::create(&**self.writing.store.fs(), &plan.path, &plan.columns)?
                .with_effort(self.writing.effort),
        };
        blocks.iter().try_for_each(|block| writer.write_column_block(column, block))?;
        if is_complete && column + 1 == plan.columns.len() {
            files.finished.push(writer.finish()?);
        } else {
            files.open = Some(writer);
        }
        Ok(())
    }

    fn fail(&self, error: Error) {
        let mut queue = lock(&self.queue);
        queue.failure.get_or_insert(error);
        drop(queue);
        self.next_task.store(self.task_count, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

struct StopOnPanic<'a>(&'a Output<'a>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::new(ErrorKind::Internal, "a merge panicked".to_owned()));
        }
    }
}
