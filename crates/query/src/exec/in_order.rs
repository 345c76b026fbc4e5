//! Rows of a table in its order, read in pieces that all threads read ahead.
//!
//! In: a plan of a scan in order, below filters and projections at most. Out: the streams of the scan. Each has the rows of
//! its pieces in their order, so that rows of one time stay in the order of arrival, whichever thread is first.
//!
//! Always: a stream reads nothing ahead of its first piece, and then more and more up to a limit, so that queries of few
//! rows read little. Waiting pieces are in the query's memory; without room there, the stream reads nothing ahead. The
//! pieces that all streams of all queries have read ahead share [`AHEAD_BYTES`]; past it a stream reads a piece when its
//! reader needs the rows. Projected values of any width ([`super::sliced`]) are computed with their piece where they are
//! small, and otherwise in slices of rows when the reader needs them. Pieces of wide rows are handed out in small batches
//! ([`super::wide_pieces`]). A dropped stream gives up the pieces that have not begun; a piece that has begun is read to its
//! end.

use super::compact::compacted;
use super::pieces::Pieces;
use super::sliced::{Expressions, Slices, is_wide};
use super::timed;
use super::wide_pieces::WidePiece;
use super::width::bytes_of_rows;
use crate::scan::exec::ScanExec;
use crate::scan::prune::Piece;
use crate::{CancelToken, Error};
use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
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

/// Bytes of pieces that are read ahead, of all queries.
const AHEAD_BYTES: usize = 256 << 20;
/// Bytes of a piece with its projected values of any width.
const PIECE_BYTES: usize = 8 << 20;
/// Behind a larger piece of wide rows nothing is read ahead. 512 bytes a row of a block.
const WIDE_PIECE_BYTES: usize = 32 << 20;

/// The memory of all pieces that are read ahead. An extension of the session.
#[derive(Debug)]
pub(crate) struct ReadAhead(Arc<dyn MemoryPool>);

impl Default for ReadAhead {
    fn default() -> ReadAhead {
        ReadAhead(Arc::new(GreedyMemoryPool::new(AHEAD_BYTES)))
    }
}

#[derive(Debug)]
pub(crate) struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    /// Rows of each stream, at most.
    limit: Option<usize>,
    /// Of each stream, pieces that are read or wait.
    ahead: usize,
    /// Bytes of the batches in which wide pieces are handed out, if they are.
    hands_out: Option<usize>,
    /// What the streams of one execution share.
    pieces: OnceLock<Arc<Pieces>>,
    metrics: ExecutionPlanMetricsSet,
}

impl InOrder {
    pub fn new(input: Arc<dyn ExecutionPlan>, limit: Option<usize>, ahead: usize) -> InOrder {
        let (pieces, metrics) = (OnceLock::new(), ExecutionPlanMetricsSet::new());
        InOrder { input, limit, ahead, hands_out: None, pieces, metrics }
    }

    /// Returns a copy whose wide pieces are handed out in batches of so many bytes.
    pub fn handing_out(&self, batch_bytes: usize) -> InOrder {
        InOrder { hands_out: Some(batch_bytes), ..InOrder::new(self.input.clone(), self.limit, self.ahead) }
    }

    pub fn hands_out(&self) -> bool {
        self.hands_out.is_some()
    }

    /// The projection on top of the input, if its rows can have any width.
    fn wide(&self) -> Option<&ProjectionExec> {
        self.input.downcast_ref::<ProjectionExec>().filter(|projection| is_wide(projection))
    }

    fn pieces(&self, cancel: &CancelToken) -> Result<Arc<Pieces>> {
        if let Some(pieces) = self.pieces.get() {
            return Ok(pieces.clone());
        }
        let input = self.wide().map_or(&self.input, ProjectionExec::input);
        let pieces = Pieces::of(input, cancel).ok_or_else(|| Error::internal("pieces of no table"))?;
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
        Ok(Arc::new(InOrder { hands_out: self.hands_out, ..InOrder::new(input, self.limit, self.ahead) }))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let input = self.input.clone();
        Ok(Arc::new(InOrder { hands_out: self.hands_out, ..InOrder::new(input, self.limit, self.ahead) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let cancel = context.session_config().get_extension::<CancelToken>().unwrap_or_default();
        let table = self.pieces(&cancel)?;
        let scan = table.scan().ok_or_else(|| Error::internal("a table that is no scan"))?;
        let expressions = self.wide().map(Expressions::new);
        let shared = context.session_config().get_extension::<ReadAhead>().unwrap_or_default();
        let memory = Memory {
            of_query: MemoryConsumer::new(NAME).register(context.memory_pool()),
            of_all: MemoryConsumer::new(NAME).register(&shared.0),
        };
        let ahead = Ahead {
            slices: expressions.clone().map(|expressions| Slices::new(expressions, scan.partitions())),
            reading: Arc::new(Reading { table: table.clone(), expressions, memory, hands_out: self.hands_out, cancel }),
            rest: None,
            pieces: scan.pieces_of(partition),
            left: self.limit.unwrap_or(usize::MAX),
            next: 0,
            done: 0,
            most: self.ahead,
            has_room: true,
            running: VecDeque::new(),
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
    rows: Rows,
    /// True if the values of the wide projection are still to be computed.
    is_unprojected: bool,
    /// `None` where the memory of the query or of all pieces has no room for the rows.
    memory: Option<Memory>,
}

enum Rows {
    All(RecordBatch),
    Wide(Rest),
}

/// The rows of a wide piece that are still to be handed out.
struct Rest {
    rows: WidePiece,
    piece: Piece,
    /// Rows of the piece that were wanted, the first ones.
    rows_max: usize,
}

#[derive(Debug)]
struct Memory {
    of_query: MemoryReservation,
    of_all: MemoryReservation,
}

impl Memory {
    /// Reserves bytes for one piece; `None` if there is no room.
    fn with_room(&self, bytes: usize) -> Option<Memory> {
        let memory = Memory { of_query: self.of_query.new_empty(), of_all: self.of_all.new_empty() };
        memory.of_query.try_grow(bytes).and_then(|()| memory.of_all.try_grow(bytes)).is_ok().then_some(memory)
    }
}

/// The state that a thread needs to read a piece.
#[derive(Debug)]
struct Reading {
    table: Arc<Pieces>,
    /// The expressions of a wide projection above the pieces.
    expressions: Option<Expressions>,
    memory: Memory,
    hands_out: Option<usize>,
    cancel: Arc<CancelToken>,
}

impl Reading {
    fn read(&self, piece: Piece, rows: usize) -> Result<Option<Read>> {
        let Some(batch) = self.table.read_first(piece, rows)? else { return Ok(None) };
        let batch = if self.hands_out.is_some() { compacted(batch) } else { batch };
        if let Some(expressions) = &self.expressions {
            let bytes = expressions.estimate(&batch)?;
            if bytes <= PIECE_BYTES
                && let Some(memory) = self.memory.with_room(bytes)
            {
                let rows = Rows::All(compacted(expressions.evaluate(&batch)?));
                return Ok(Some(Read { rows, is_unprojected: false, memory: Some(memory) }));
            }
        }
        let is_unprojected = self.expressions.is_some();
        let wide = match self.hands_out {
            Some(batch_bytes) => WidePiece::try_new(batch, batch_bytes, self.cancel.pieces()),
            None => Err(batch),
        };
        Ok(Some(match wide {
            Ok(wide) => {
                let room = (wide.bytes() <= WIDE_PIECE_BYTES).then(|| self.memory.with_room(wide.bytes()));
                let rest = Rest { rows: wide, piece, rows_max: rows };
                Read { rows: Rows::Wide(rest), is_unprojected, memory: room.flatten() }
            }
            Err(batch) => {
                let memory = self.memory.with_room(bytes_of_rows(&batch));
                Read { rows: Rows::All(batch), is_unprojected, memory }
            }
        }))
    }

    /// Returns the next rows of a wide piece.
    fn next_of(&self, rest: &mut Rest) -> Result<Option<RecordBatch>> {
        let (piece, rows_max) = (rest.piece, rest.rows_max);
        rest.rows.next(self.cancel.pieces(), || Ok(self.table.read_again(piece, rows_max)?))
    }
}

/// One stream.
struct Ahead {
    reading: Arc<Reading>,
    /// Rows whose wide values are still to be computed.
    slices: Option<Slices>,
    /// The rest of the last piece, if that is wide.
    rest: Option<Rest>,
    pieces: Arc<[Piece]>,
    /// The first piece that has not begun, and how many have come out.
    next: usize,
    done: usize,
    most: usize,
    /// False after a piece that had no room: the next one is read when its rows are wanted.
    has_room: bool,
    running: VecDeque<SpawnedTask<Result<Option<Read>>>>,
    /// Rows that are still wanted.
    left: usize,
}

impl Ahead {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            if let Some(batch) = self.slices.as_mut().map(Slices::next).transpose()?.flatten() {
                return Ok(Some(self.wanted(batch)));
            }
            if let Some(rest) = &mut self.rest {
                let batch = self.reading.next_of(rest)?;
                match (batch, &mut self.slices) {
                    (None, _) => self.rest = None,
                    (Some(batch), Some(slices)) => slices.push(batch),
                    (Some(batch), None) => return Ok(Some(self.wanted(batch))),
                }
                continue;
            }
            let is_first = self.done == 0;
            let read = if self.running.is_empty() && (is_first || !self.has_room) {
                // It is waited for: handing it to a thread takes longer.
                let Some(piece) = self.pieces.get(self.next).copied() else { break };
                self.next += 1;
                self.reading.read(piece, self.left)?
            } else {
                self.begin();
                let Some(task) = self.running.pop_front() else { break };
                task.join().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??
            };
            self.done += 1;
            let Some(Read { rows, is_unprojected, memory }) = read else { continue };
            self.has_room = memory.is_some();
            match (rows, self.slices.as_mut().filter(|_| is_unprojected)) {
                (Rows::Wide(rest), _) => self.rest = Some(rest),
                (Rows::All(batch), Some(slices)) => slices.push(batch),
                (Rows::All(batch), None) => return Ok(Some(self.wanted(batch))),
            }
        }
        self.running.clear();
        Ok(None)
    }

    /// The rows of a batch that are still wanted.
    fn wanted(&mut self, batch: RecordBatch) -> RecordBatch {
        let batch = if batch.num_rows() > self.left { batch.slice(0, self.left) } else { batch };
        self.left -= batch.num_rows();
        batch
    }

    fn begin(&mut self) {
        let count = if self.has_room { self.most.min(self.done + 1) } else { 0 };
        while self.running.len() < count
            && let Some(piece) = self.pieces.get(self.next).copied()
        {
            self.next += 1;
            let (reading, left) = (self.reading.clone(), self.left);
            self.running.push_back(SpawnedTask::spawn(async move { reading.read(piece, left) }));
        }
    }
}

/// How many pieces of each stream of a scan are worth reading ahead; `None` if its rows come as soon without.
pub(crate) fn ahead_of(scan: &ScanExec, threads: usize) -> Option<usize> {
    let is_much = threads > 1 && scan.rows_max() > BLOCK_ROWS;
    let ends_soon = scan.limit().is_some() && !scan.is_filtered();
    // Streams that are merged wait for each other: together they read ahead what one would.
    (is_much && !ends_soon && scan.gives_rows()).then(|| (threads + 1).div_ceil(scan.partitions()))
}
