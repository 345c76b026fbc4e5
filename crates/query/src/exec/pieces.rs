//! A table read piece by piece, through what stands above its scan: filters and projections.
//!
//! In: a plan of these alone. Out: the rows of any piece as the plan gives them; threads read several at a time.

use super::sliced::Expressions;
use crate::scan::exec::{ByPiece, ScanExec};
use crate::scan::prune::Piece;
use crate::{CancelToken, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result as DFResult;
use datafusion::common::cast::as_boolean_array;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Pieces {
    pub plan: Arc<dyn ExecutionPlan>,
    scan: Arc<dyn ExecutionPlan>,
    by_piece: ByPiece,
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Project(Expressions),
    Filter(Arc<dyn PhysicalExpr>, Option<Vec<usize>>),
}

impl Pieces {
    /// `None` if the plan is more than that.
    pub fn of(plan: &Arc<dyn ExecutionPlan>, cancel: &CancelToken) -> Option<Pieces> {
        let (whole, mut steps, mut plan) = (plan.clone(), Vec::new(), plan);
        loop {
            if let Some(scan) = plan.downcast_ref::<ScanExec>() {
                steps.reverse();
                return Some(Pieces { plan: whole, scan: plan.clone(), by_piece: scan.by_piece(cancel), steps });
            }
            if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                steps.push(Step::Project(Expressions::new(projection)));
                plan = projection.input();
            } else {
                let filter = plan.downcast_ref::<FilterExec>()?;
                let projection = filter.projection().as_ref().map(|columns| columns.to_vec());
                steps.push(Step::Filter(filter.predicate().clone(), projection));
                plan = filter.input();
            }
        }
    }

    pub fn scan(&self) -> Option<&ScanExec> {
        self.scan.downcast_ref()
    }

    /// Whether what the scan gives is what comes out.
    pub fn has_filters(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Filter(..)))
    }

    /// `None` where there are none.
    pub fn read(&self, piece: Piece) -> Result<Option<RecordBatch>> {
        self.read_first(piece, usize::MAX)
    }

    /// As [`Pieces::read`], of which no more than the first so many are wanted; there may be more.
    pub fn read_first(&self, piece: Piece, rows: usize) -> Result<Option<RecordBatch>> {
        // Which rows pass filters above the scan is not known before.
        let of_scan = if self.has_filters() { usize::MAX } else { rows };
        let Some(batch) = self.by_piece.read(piece, of_scan)? else { return Ok(None) };
        Ok(Some(self.stepped(batch)?).filter(|batch| batch.num_rows() > 0))
    }

    /// As [`Pieces::read_first`] of a piece that was read and counted before.
    pub fn read_again(&self, piece: Piece, rows: usize) -> Result<Option<RecordBatch>> {
        let of_scan = if self.has_filters() { usize::MAX } else { rows };
        let batch = self.by_piece.read_again(piece, of_scan)?;
        Ok(batch.map(|batch| self.stepped(batch)).transpose()?)
    }

    pub fn stepped(&self, batch: RecordBatch) -> DFResult<RecordBatch> {
        self.steps.iter().try_fold(batch, |batch, step| match step {
            Step::Project(expressions) => expressions.evaluate(&batch),
            Step::Filter(predicate, projection) => {
                let mask = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
                let batch = match projection {
                    Some(columns) => batch.project(columns)?,
                    None => batch,
                };
                Ok(filter_record_batch(&batch, as_boolean_array(&mask)?)?)
            }
        })
    }
}
