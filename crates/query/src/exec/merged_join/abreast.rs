//! Slices that are joined side by side and come out one after the other.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use futures::stream::{BoxStream, try_unfold};
use futures::{StreamExt, TryStreamExt};
use std::sync::Arc;

/// Makes slices and joins each.
pub(super) trait Abreast: Send + Sync + 'static {
    type Slice: Send + 'static;

    /// Whether the rows are so few that another thread would not be worth its start. Asked first.
    fn has_few_rows(&self) -> impl Future<Output = Result<bool>> + Send;

    /// The next in order; `None` after the last.
    fn next(&self) -> impl Future<Output = Result<Option<Self::Slice>>> + Send;

    /// The rows of a slice; `None` if there are none.
    fn joined(&self, slice: Self::Slice) -> impl Future<Output = Result<Option<RecordBatch>>> + Send;
}

/// The rows of all slices, of which a few more than there are threads are under way. Dropping it ends them.
pub(super) fn in_order<S: Abreast>(slices: Arc<S>, threads: usize) -> BoxStream<'static, Result<RecordBatch>> {
    let rows = async move {
        let is_short = slices.has_few_rows().await?;
        let joins = slices.clone();
        let each = try_unfold(slices, |slices| async move {
            let slice = slices.next().await?;
            Ok::<_, DataFusionError>(slice.map(|slice| (slice, slices)))
        });
        let joined = each.map_ok(move |slice| {
            let joins = joins.clone();
            async move {
                if is_short {
                    return joins.joined(slice).await;
                }
                let task = SpawnedTask::spawn(async move { joins.joined(slice).await });
                task.join().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
            }
        });
        let under_way = if is_short { 1 } else { threads + 1 };
        Ok::<_, DataFusionError>(joined.try_buffered(under_way).try_filter_map(futures::future::ok).boxed())
    };
    futures::stream::once(rows).try_flatten().boxed()
}
