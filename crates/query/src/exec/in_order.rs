//! Rows of a table in its order, of pieces that all threads read ahead and that come out one after the other.
//!
//! In: a plan of a scan in order, below filters and projections at most. Out: the streams of the scan, of each the rows of
//! its pieces in their order, so that rows of one time stay as they arrived, whichever thread was first.
//!
//! Always: of the first piece a stream waits for, nothing is read ahead, then more and more up to a limit, so that whoever
//! wants few rows pays for few. What waits is in the query's memory; where that has no room, nothing is read ahead any
//! more. A stream that is dropped lets go of what has not begun; what has, ends with its piece.

use super::pieces::Pieces;
use super::timed;
use crate::scan::exec::ScanExec;
use crate::scan::prune::Piece;
use crate::{CancelToken, Error};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::try_unfold;
use futures::{StreamExt, TryStreamExt};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tidalite_types::BLOCK_ROWS;

/// As it is called in plans.
pub(crate) const NAME: &str = "TidaliteInOrder";

#[derive(Debug)]
pub(crate) struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    /// Rows of each stream, at most.
    limit: Option<usize>,
    /// Of each stream, pieces that are read or wait.
    ahead: usize,
    /// What the streams of one execution share.
    pieces: OnceLock<Arc<Pieces>>,
    metrics: ExecutionPlanMetricsSet,
}

impl InOrder {
    pub fn new(input: Arc<dyn ExecutionPlan>, limit: Option<usize>, ahead: usize) -> InOrder {
        InOrder { input, limit, ahead, pieces: OnceLock::new(), metrics: ExecutionPlanMetricsSet::new() }
    }

    fn pieces(&self, cancel: &CancelToken) -> Result<Arc<Pieces>> {
        if let Some(pieces) = self.pieces.get() {
            return Ok(pieces.clone());
        }
        let pieces = Pieces::of(&self.input, cancel).ok_or_else(|| Error::internal("pieces of no table"))?;
        Ok(self.pieces.get_or_init(|| Arc::new(pieces)).clone())
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = inputs.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(InOrder::new(input, self.limit, self.ahead)))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(InOrder::new(self.input.clone(), self.limit, self.ahead)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let table = self.pieces(&cancel)?;
        let scan = table.scan().ok_or_else(|| Error::internal("a table that is no scan"))?;
        let ahead = Ahead {
            pieces: scan.pieces_of(partition),
            left: self.limit.unwrap_or(usize::MAX),
            table,
            next: 0,
            done: 0,
            most: self.ahead,
            running: VecDeque::new(),
            memory: MemoryConsumer::new(NAME).register(context.memory_pool()),
        };
        let rows = try_unfold(ahead, |mut ahead| async move {
            let batch = ahead.next().await?;
            Ok(batch.map(|batch| (batch, ahead)))
        });
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let rows = rows.inspect_ok(move |batch: &RecordBatch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), timed(rows.boxed(), &self.metrics))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}: pieces ahead")
    }
}

/// The rows of a piece on their way out.
struct Read {
    batch: RecordBatch,
    /// `None` where the query's memory has no room for it.
    memory: Option<MemoryReservation>,
}

/// One stream.
struct Ahead {
    table: Arc<Pieces>,
    pieces: Arc<[Piece]>,
    /// The first piece that has not begun, and how many have come out.
    next: usize,
    done: usize,
    most: usize,
    running: VecDeque<SpawnedTask<Result<Option<Read>>>>,
    memory: MemoryReservation,
    /// Rows that are still wanted.
    left: usize,
}

impl Ahead {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let read = if self.done == 0
                && let Some(piece) = self.pieces.first().copied()
            {
                // It is waited for: handing it to a thread takes longer.
                self.next = 1;
                read(&self.table, piece, self.left, self.memory.new_empty())?
            } else {
                self.begin();
                let Some(task) = self.running.pop_front() else { break };
                task.join().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??
            };
            self.done += 1;
            let Some(Read { batch, memory }) = read else { continue };
            if memory.is_none() {
                self.most = 1;
            }
            let batch = if batch.num_rows() > self.left { batch.slice(0, self.left) } else { batch };
            self.left -= batch.num_rows();
            return Ok(Some(batch));
        }
        self.running.clear();
        Ok(None)
    }

    fn begin(&mut self) {
        let count = self.most.min(self.done + 1);
        while self.running.len() < count
            && let Some(piece) = self.pieces.get(self.next).copied()
        {
            self.next += 1;
            let (table, left, memory) = (self.table.clone(), self.left, self.memory.new_empty());
            self.running.push_back(SpawnedTask::spawn(async move { read(&table, piece, left, memory) }));
        }
    }
}

fn read(table: &Pieces, piece: Piece, rows: usize, memory: MemoryReservation) -> Result<Option<Read>> {
    let Some(batch) = table.read_first(piece, rows)? else { return Ok(None) };
    let of = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_default();
    let memory = memory.try_grow(batch.columns().iter().map(of).sum()).is_ok().then_some(memory);
    Ok(Some(Read { batch, memory }))
}

/// How many pieces of each stream of a scan are worth reading ahead; `None` if its rows come as soon without.
pub(crate) fn ahead_of(scan: &ScanExec, threads: usize) -> Option<usize> {
    let is_much = threads > 1 && scan.rows_max() > BLOCK_ROWS;
    let ends_soon = scan.limit().is_some() && !scan.is_filtered();
    // Streams that are merged wait for each other: together they read ahead what one would.
    (is_much && !ends_soon && scan.gives_rows()).then(|| (threads + 1).div_ceil(scan.partitions()))
}
