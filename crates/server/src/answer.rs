//! The rows of a query as a stream of text: QuestDB's JSON or CSV.
//!
//! In: record batches as they are computed. Out: chunks of [`CHUNK_BYTES`] or a few times as much; the next batch is asked
//! for when the last chunk was taken, so a slow reader slows the query, and dropping the answer stops it.
//! After an error behind the first chunk, JSON ends with the field `error` as a complete document. CSV has no field for an
//! error and ends with an error of the stream, which the client sees as an aborted response.

mod batch;

use crate::cells::{Marks, Strips, Style, prepared, push_csv};
use crate::errors::{position, with_hint};
use crate::json::push_str;
use arrow::array::RecordBatch;
use batch::Batch;
use bytes::Bytes;
use futures::StreamExt;
use std::time::{Duration, Instant};
use tidalite::{Error, ErrorKind, OutputColumn, Result, Rows};

/// What less than this is there to be sent waits for more.
const CHUNK_BYTES: usize = 32 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Json(JsonForm),
    Csv { delimiter: u8, header: bool },
}

/// What besides the rows a client asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonForm {
    /// Without `query`, `columns` and `timestamp`.
    pub no_metadata: bool,
    /// Count all rows, not only those within the limit.
    pub count: bool,
    pub timings: bool,
    pub explain: bool,
    /// 64-bit integers in quotes.
    pub long_quotes: bool,
    /// NaN and the infinities as text in quotes, for which JSON has no number; else they are null.
    pub not_finite_quotes: bool,
}

impl Form {
    /// How values are written, and what stands around them in a row.
    fn style_and_marks(&self) -> (Style, Marks) {
        match self {
            Form::Json(form) => (form.style(), Marks { open: *b",[", between: b',', close: *b"]\0" }),
            Form::Csv { delimiter, .. } => (Style::Csv, Marks { open: [0; 2], between: *delimiter, close: *b"\r\n" }),
        }
    }
}

impl JsonForm {
    fn style(&self) -> Style {
        Style::Json { long_quotes: self.long_quotes, not_finite_quotes: self.not_finite_quotes }
    }
}

/// Which rows are wanted: all but the first `skip`, at most `take`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub skip: u64,
    pub take: u64,
}

impl Limit {
    pub const ALL: Limit = Limit { skip: 0, take: u64::MAX };

    /// `n`, or `lo,hi`: rows lo to hi, both included, counted from 1.
    #[must_use]
    pub fn parse(text: &str) -> Option<Limit> {
        match text.split_once(',') {
            None => Some(Limit { skip: 0, take: text.trim().parse().ok()? }),
            Some((lo, hi)) => {
                let (lo, hi): (u64, u64) = (lo.trim().parse().ok()?, hi.trim().parse().ok()?);
                let skip = lo.saturating_sub(1);
                Some(Limit { skip, take: hi.saturating_sub(skip) })
            }
        }
    }
}

enum Stage {
    Head,
    Rows,
    Tail,
    Failed(Error),
    End,
}

pub struct Answer {
    sql: String,
    form: Form,
    limit: Limit,
    rows: Rows,
    /// Columns of the result that are shown, by index.
    shown: Vec<usize>,
    /// The batch being written.
    batch: Option<Batch>,
    strips: Strips,
    stage: Stage,
    /// The query has ended: its stream may not be asked again.
    exhausted: bool,
    /// Rows the query gave so far.
    seen: u64,
    written: u64,
    started: Instant,
    first_row: Duration,
}

impl Answer {
    /// Waits for the first batch, so that an error before it is an error of the request. `columns` picks columns
    /// by name; none picks all.
    ///
    /// # Errors
    /// What the query failed with, or a column in `columns` that it does not have.
    pub async fn start(sql: String, rows: Rows, form: Form, limit: Limit, columns: &[String]) -> Result<Answer> {
        let shown = pick(&rows.columns, columns)?;
        let mut answer = Answer {
            sql,
            form,
            limit,
            rows,
            shown,
            batch: None,
            strips: Strips::default(),
            stage: Stage::Head,
            exhausted: false,
            seen: 0,
            written: 0,
            started: Instant::now(),
            first_row: Duration::ZERO,
        };
        answer.next_batch().await?;
        answer.first_row = answer.started.elapsed();
        Ok(answer)
    }

    /// Rows written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The next piece of text; `None` at the end.
    pub async fn next_chunk(&mut self) -> Option<Result<Bytes>> {
        let mut out = Vec::new();
        loop {
            match std::mem::replace(&mut self.stage, Stage::End) {
                Stage::Head => {
                    self.write_head(&mut out);
                    self.stage = Stage::Rows;
                }
                Stage::Rows => {
                    let written = self.write_piece(&mut out).await;
                    let next = match &self.batch {
                        None if written.is_ok() => self.next_batch().await,
                        _ => written,
                    };
                    if let Err(error) = next {
                        tracing::warn!(%error, "a query failed after its first rows were sent");
                        self.write_failure(&mut out, &error);
                        self.stage = match self.form {
                            Form::Json(_) => Stage::End,
                            Form::Csv { .. } => Stage::Failed(error),
                        };
                        return Some(Ok(out.into()));
                    }
                    self.stage = if self.batch.is_none() { Stage::Tail } else { Stage::Rows };
                    if out.len() >= CHUNK_BYTES {
                        return Some(Ok(out.into()));
                    }
                }
                Stage::Tail => {
                    self.write_tail(&mut out);
                    return if out.is_empty() { None } else { Some(Ok(out.into())) };
                }
                Stage::Failed(error) => return Some(Err(error)),
                Stage::End => return None,
            }
        }
    }

    fn limit_reached(&self) -> bool {
        self.written >= self.limit.take
    }

    /// Leaves the next batch with a row to write in `batch`, or `None` there at the end.
    async fn next_batch(&mut self) -> Result<()> {
        let count_on = matches!(&self.form, Form::Json(JsonForm { count: true, .. }));
        while !self.exhausted && (!self.limit_reached() || count_on) {
            let Some(batch) = self.rows.stream.next().await else {
                self.exhausted = true;
                break;
            };
            let batch = batch?;
            let before = self.seen;
            self.seen += batch.num_rows() as u64;
            if self.limit_reached() || self.seen <= self.limit.skip || batch.num_rows() == 0 {
                continue;
            }
            let from = self.limit.skip.saturating_sub(before) as usize;
            let left = self.limit.take - self.written;
            let until = (batch.num_rows() as u64).min((from as u64).saturating_add(left)) as usize;
            self.batch = Some(self.shown(&batch, (from, until)));
            return Ok(());
        }
        Ok(())
    }

    fn shown(&self, batch: &RecordBatch, rows: (usize, usize)) -> Batch {
        let arrays = self.shown.iter().map(|i| prepared(batch.column(*i))).collect();
        let type_names = self.shown.iter().map(|i| self.rows.columns[*i].type_name.clone()).collect();
        Batch::new(arrays, type_names, rows, self.form.style_and_marks())
    }

    /// Of the batch, if there is one; leaves none when all is written.
    async fn write_piece(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let from = out.len();
        let rows = batch.write(&mut self.strips, out).await?;
        if batch.is_written() {
            self.batch = None;
        }
        if self.written == 0
            && rows > 0
            && let Form::Json(_) = self.form
        {
            // No comma before the first row.
            out.remove(from);
        }
        self.written += rows as u64;
        Ok(())
    }

    fn write_head(&mut self, out: &mut Vec<u8>) {
        let shown = self.shown.iter().map(|i| &self.rows.columns[*i]);
        match &self.form {
            Form::Csv { header: false, .. } => {}
            Form::Csv { delimiter, .. } => {
                for (i, column) in shown.enumerate() {
                    if i > 0 {
                        out.push(*delimiter);
                    }
                    push_csv(out, column.name.as_bytes());
                }
                out.extend_from_slice(b"\r\n");
            }
            Form::Json(form) if form.no_metadata => out.extend_from_slice(b"{\"dataset\":["),
            Form::Json(_) => {
                out.extend_from_slice(b"{\"query\":");
                push_str(out, &self.sql);
                out.extend_from_slice(b",\"columns\":[");
                for (i, column) in shown.enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    push_column(out, column);
                }
                let timestamp = self.rows.timestamp.and_then(|t| self.shown.iter().position(|i| *i == t));
                let timestamp = timestamp.map_or(-1, |t| t as i64);
                out.extend_from_slice(format!("],\"timestamp\":{timestamp},\"dataset\":[").as_bytes());
            }
        }
    }

    fn write_tail(&mut self, out: &mut Vec<u8>) {
        let Form::Json(form) = &self.form else { return };
        let count = if form.count { self.seen } else { self.written };
        out.extend_from_slice(format!("],\"count\":{count}").as_bytes());
        if form.timings {
            let compiler = self.rows.compile_time.as_nanos();
            let (first, all) = (self.first_row.as_nanos(), self.started.elapsed().as_nanos());
            let timings = format!(
                ",\"timings\":{{\"authentication\":0,\"compiler\":{compiler},\"execute\":{first},\"count\":{}}}",
                all - first
            );
            out.extend_from_slice(timings.as_bytes());
        }
        if form.explain {
            out.extend_from_slice(b",\"explain\":{\"jitCompiled\":false}");
        }
        out.push(b'}');
    }

    fn write_failure(&self, out: &mut Vec<u8>, error: &Error) {
        if let Form::Json(_) = self.form {
            out.extend_from_slice(format!("],\"count\":{},\"error\":", self.written).as_bytes());
            push_str(out, &with_hint(error));
            out.extend_from_slice(format!(",\"position\":{}}}", position(&self.sql, error)).as_bytes());
        }
    }
}

fn pick(columns: &[OutputColumn], names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..columns.len()).collect());
    }
    let find = |name: &String| {
        columns.iter().position(|c| c.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("column {name:?} of parameter cols is not in the result"))
        })
    };
    names.iter().map(find).collect()
}

/// A column as REST clients expect it; `DOUBLE[][]` is an array with two dimensions there.
fn push_column(out: &mut Vec<u8>, column: &OutputColumn) {
    out.extend_from_slice(b"{\"name\":");
    push_str(out, &column.name);
    out.extend_from_slice(b",\"type\":");
    let element = column.type_name.trim_end_matches("[]");
    let dims = (column.type_name.len() - element.len()) / 2;
    if dims > 0 {
        out.extend_from_slice(format!("\"ARRAY\",\"dim\":{dims},\"elemType\":").as_bytes());
        push_str(out, element);
    } else {
        push_str(out, if element == "IPV4" { "IPv4" } else { element });
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests;
