//! CHECK and BACKUP: long work on files, on a separate thread, ended by a cancellation.

use super::{OutputColumn, Response, Rows, Session};
use crate::backup::BackupReport;
use crate::check::CheckReport;
use crate::{Error, ErrorKind, Result};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidalite_query::CancelToken;
use tidalite_query::statement::Name;

pub(super) async fn check(session: &Session, table: Option<Name>, cancel: &CancelToken) -> Result<CheckReport> {
    let (host, cancel) = (session.host.clone(), cancel.clone());
    apart(move || {
        let name = table.as_ref().map(|name| name.text.as_str());
        host.check(name, &mut |_, _| cancel.check().map_err(Error::from))
    })
    .await
}

pub(super) async fn backup(session: &Session, to: String, cancel: &CancelToken) -> Result<BackupReport> {
    let (host, asked) = (session.host.clone(), cancel.clone());
    let work = apart(move || host.backup(&to, &mut |_, _| asked.check().map_err(Error::from)));
    // Waiting for an unresponsive store is given up: the work checks the cancellation after its request.
    tokio::select! {
        done = work => done,
        () = given_up(cancel) => Err(cancel.reason().into()),
    }
}

/// Completes some time after the statement was cancelled.
async fn given_up(cancel: &CancelToken) {
    cancel.cancelled().await;
    tokio::time::sleep(PATIENCE).await;
}

/// Time that a cancelled statement waits for an orderly end of its work.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs work on another thread; a panic becomes an error.
pub(super) async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, format!("the work broke off: {error}"))))
}

/// Returns a row for each problem.
pub(super) fn rows_of_check(report: CheckReport, started: Instant) -> Result<Response> {
    let problems = report.problems;
    let text = |pick: fn(&crate::check::Problem) -> &str| -> ArrayRef {
        Arc::new(problems.iter().map(|p| Some(pick(p)).filter(|t| !t.is_empty())).collect::<StringViewArray>())
    };
    let offsets = Int64Array::from_iter_values(problems.iter().map(|p| p.offset as i64));
    rows(
        vec![
            ("table", text(|p| &p.table)),
            ("partition", text(|p| &p.partition)),
            ("column", text(|p| &p.column)),
            ("file", text(|p| &p.file)),
            ("offset", Arc::new(offsets)),
            ("problem", text(|p| &p.problem)),
        ],
        started,
    )
}

/// Returns one row.
pub(super) fn rows_of_backup(report: &BackupReport, started: Instant) -> Result<Response> {
    let long = |value: u64| -> ArrayRef { Arc::new(Int64Array::from(vec![value as i64])) };
    rows(
        vec![
            ("backup", Arc::new(StringViewArray::from_iter_values([&report.name])) as ArrayRef),
            ("txn", long(report.txn)),
            ("files_copied", long(report.files_copied)),
            ("bytes_copied", long(report.bytes_copied)),
            ("files_shared", long(report.files_shared)),
            ("bytes_shared", long(report.bytes_shared)),
        ],
        started,
    )
}

/// Returns the columns of a response's rows.
pub(super) fn columns(answer: Response) -> Option<(Vec<OutputColumn>, SchemaRef)> {
    match answer {
        Response::Rows(rows) => Some((rows.columns, rows.schema)),
        Response::Done { .. } => None,
    }
}

fn rows(columns: Vec<(&str, ArrayRef)>, started: Instant) -> Result<Response> {
    let sql = |t: &DataType| if *t == DataType::Int64 { "LONG" } else { "VARCHAR" }.to_owned();
    let named = columns.iter().map(|(name, array)| OutputColumn {
        name: (*name).to_owned(),
        type_name: sql(array.data_type()),
        ..OutputColumn::default()
    });
    let named = named.collect();
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new(schema.clone(), columns.into_iter().map(|(_, array)| array).collect());
    let batch = batch.map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
    let stream = futures::stream::iter([Ok(batch)]).boxed();
    Ok(Response::Rows(Rows { columns: named, schema, timestamp: None, compile_time: started.elapsed(), stream }))
}
