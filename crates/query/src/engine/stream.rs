//! The rows of a running query: from its operators to its reader.

use super::{Abort, admission, ahead, memory, placed_late};
use crate::names::Words;
use crate::{CancelToken, Error, Result};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::Arc;

/// Sends the rows of a plan until there are no more, the reader leaves, or the statement is cancelled.
pub(super) async fn drive(
    physical: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    schema: SchemaRef,
    sender: ahead::Sender,
    cancel: CancelToken,
    words: Arc<Words>,
    mut ticket: Option<admission::Ticket>,
) {
    cancel.runs(&physical);
    let mut stream = match execute_stream(physical.clone(), context) {
        Ok(stream) => stream,
        Err(error) => return sender.fail(placed_late(error.into(), &words)),
    };
    loop {
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => Some(Err(cancel.reason())),
            () = sender.closed() => return,
            next = stream.next() => next.map(|batch| batch.map_err(|e| placed_late(e.into(), &words))),
        };
        let Some(batch) = next else { return };
        let batch = match batch.and_then(|batch| renamed(&batch, &schema)) {
            Ok(batch) => batch,
            Err(error) => return sender.fail(error),
        };
        // A cancelled query releases its memory and its snapshot even if its reader does not read.
        tokio::select! {
            biased;
            is_wanted = admission::pausing(sender.send(batch), &mut ticket, cancel.pieces()) => if !is_wanted { return },
            () = cancel.cancelled() => return sender.fail(cancel.reason()),
        }
    }
}

fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|e| Error::internal(e.to_string()))
}

/// Returns the rows that a task sends; dropping them ends the task.
pub(super) fn rows(
    receiver: ahead::Receiver,
    task: Option<Abort<Result<()>>>,
    cancel: CancelToken,
) -> BoxStream<'static, Result<RecordBatch>> {
    let state = Some((receiver, task, cancel, None));
    futures::stream::unfold(state, |state| async move {
        let (mut receiver, task, cancel, last) = state?;
        memory::discard(&cancel, last);
        // The reader of a cancelled query gets the error at once, before its operators have stopped.
        let next = tokio::select! {
            biased;
            next = receiver.recv() => next,
            () = cancel.cancelled() => Some(Err(cancel.reason())),
        };
        match next {
            Some(Ok(batch)) => Some((Ok(batch.clone()), Some((receiver, task, cancel, Some(batch))))),
            Some(Err(error)) => Some((Err(error), None)),
            None => match task?.result().await.and_then(|ended| ended) {
                Ok(()) => None,
                Err(error) => Some((Err(error), None)),
            },
        }
    })
    .boxed()
}
