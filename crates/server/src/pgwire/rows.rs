//! Rows on their way to the client: as many as it asked for, in the formats it asked for.
//!
//! Always: rows are computed only as they are sent; a client that leaves meanwhile ends the query.

use super::prepared::{first_word, format};
use super::reply::{Output, Report};
use super::running_query::RunningQuery;
use super::session::{Session, Step, gone, reported};
use super::types::Column;
use super::values::{Cells, canonical};
use crate::counters::add;
use arrow::array::ArrayRef;
use futures::StreamExt;
use tidalite::{Result as Done, TimeZone};

impl Session<'_> {
    /// Sends rows, at most `max`; gives how many, and whether there may be more.
    pub(super) async fn send(&mut self, running: &mut RunningQuery, formats: &[i16], max: u64) -> Step<(u64, bool)> {
        let mut sent = 0;
        loop {
            if running.batch.is_none() {
                let next = tokio::select! {
                    biased;
                    next = running.rows.stream.next() => next,
                    () = self.input.closed() => return Err(gone().into()),
                };
                let Some(batch) = next else { break };
                let batch = batch.map_err(|error| reported("", &error))?;
                if batch.num_columns() != running.columns.len() || running.has_other_columns {
                    let changed = Report::error("0A000", "cached plan must not change result type");
                    // asyncpg and pgjdbc prepare the statement again.
                    return Err(Report { routine: Some("RevalidateCachedQuery"), ..changed }.into());
                }
                let arrays = running.columns.iter().zip(batch.columns()).map(|(c, a)| canonical(c, a));
                let arrays: Vec<ArrayRef> = arrays.collect::<Done<_>>().map_err(|error| reported("", &error))?;
                running.batch = Some((arrays, batch.num_rows(), 0));
            }
            if let Some((arrays, rows, next)) = &mut running.batch {
                let end =
                    usize::try_from(max - sent).map_or(*rows, |left| rows.saturating_sub(*next).min(left) + *next);
                let from = *next;
                let look = Look { formats, zone: self.variables.zone };
                *next = write_rows(&mut self.out, &running.columns, arrays, look, from..end)
                    .map_err(|error| reported("", &error))?;
                sent += (*next - from) as u64;
                if next == rows {
                    running.batch = None;
                }
            }
            self.out.flush_if_much().await?;
            if sent >= max {
                break;
            }
        }
        running.sent += sent;
        add(&self.shared.counters.query_rows, sent);
        Ok((sent, sent >= max))
    }
}

/// How values look to the client.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub formats: &'a [i16],
    pub zone: Option<TimeZone>,
}

/// Writes rows until much is waiting to be sent; gives the next one.
pub fn write_rows(
    out: &mut Output,
    columns: &[Column],
    arrays: &[ArrayRef],
    look: Look,
    rows: std::ops::Range<usize>,
) -> Done<usize> {
    let cells: Vec<(Cells, bool)> = columns
        .iter()
        .zip(arrays)
        .enumerate()
        .map(|(i, (column, array))| {
            let cells = Cells::new(column.pg_type, column.is_ipv4, array.as_ref()).in_zone(look.zone);
            (cells, format(look.formats, i) == 1)
        })
        .collect();
    for row in rows.clone() {
        if out.has_much() {
            return Ok(row);
        }
        out.try_message(b'D', |body| {
            body.extend_from_slice(&(cells.len() as u16).to_be_bytes());
            cells.iter().try_for_each(|(cells, is_binary)| cells.write(row, *is_binary, body))
        })?;
    }
    Ok(rows.end)
}

pub fn rows_tag(sql: &str, count: u64) -> String {
    match first_word(sql).as_str() {
        "show" => "SHOW".to_owned(),
        "explain" => "EXPLAIN".to_owned(),
        // With RETURNING.
        "insert" => format!("INSERT 0 {count}"),
        "delete" => format!("DELETE {count}"),
        "update" => format!("UPDATE {count}"),
        _ => format!("SELECT {count}"),
    }
}
