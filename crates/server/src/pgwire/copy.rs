//! COPY from and to the client: its rows as messages of their own between the statement and its end.
//!
//! Always: rows that come are parsed as fast as they are committed, and wait on the client's side; rows that go are
//! computed as they are sent. A client that breaks off, or leaves, has copied nothing that was not committed before.

use super::copy_binary::{self, Incoming};
use super::message::{Malformed, Message};
use super::reply::Report;
use super::session::{Session, Step, gone, reported};
use super::types::{Column, columns};
use super::values::{Cells, canonical};
use crate::counters::add;
use arrow::array::ArrayRef;
use futures::StreamExt;
use std::sync::atomic::{AtomicBool, Ordering};
use tidalite::copy::{Copy, CopyFormat, CopyWhat, Name, with_client};
use tidalite::types::pg_type::{self, PgType};
use tidalite::types::{ColumnSchema, TableSchema};
use tidalite::{Response, Result as Done, Rows};

/// How rows are written.
struct Style {
    is_binary: bool,
    /// Whether the header of the binary format is still to be sent: it stands before the first row.
    begins: AtomicBool,
    is_csv: bool,
    delimiter: u8,
    null: String,
}

impl Session<'_> {
    pub(super) async fn copy(&mut self, sql: &str) -> Step {
        self.check_transaction()?;
        let copy = with_client(sql).map_err(|error| reported(sql, &error))?;
        match copy {
            Some(copy) if copy.is_from => self.copy_in(sql, copy).await,
            Some(copy) => self.copy_out(sql, &copy).await,
            None => match self.start(sql, sql, Vec::new()).await? {
                Response::Done { rows, .. } => {
                    self.changed(&format!("COPY {rows}"), rows);
                    Ok(())
                }
                Response::Rows(_) => Err(Report::error("XX000", "a COPY gave rows").into()),
            },
        }
    }

    async fn copy_in(&mut self, sql: &str, copy: Copy) -> Step {
        let CopyWhat::Table { table, columns } = &copy.what else {
            return Err(Report::error("42601", "rows are copied into a table").into());
        };
        let transaction = self.open_transaction();
        let schema = match &transaction {
            Some(transaction) => transaction.table(&table.text),
            None => self.shared.database.table(&table.text),
        };
        let Some(schema) = schema else {
            let message = format!("table \"{}\" does not exist", table.text);
            let mut report = Report::error("42P01", message);
            report.position = Some(sql.get(..table.position).map_or(0, |before| before.chars().count()) + 1);
            return Err(report.into());
        };
        if let Some(unknown) = columns.iter().find(|name| schema.column(&name.text).is_none()) {
            let message = format!("column \"{}\" of table \"{}\" does not exist", unknown.text, schema.name);
            let mut report = Report::error("42703", message);
            report.position = Some(sql.get(..unknown.position).map_or(0, |before| before.chars().count()) + 1);
            return Err(report.into());
        }
        let width = if columns.is_empty() { schema.columns.len() } else { columns.len() };
        let mut rows = (copy.format == Some(CopyFormat::Binary)).then(|| Incoming::new(sent_columns(&schema, columns)));
        let copy = if rows.is_some() { as_csv(copy) } else { copy };
        let options = self.options();
        let begun = match &transaction {
            Some(transaction) => transaction.copy_in(sql, copy, options),
            None => self.shared.database.copy_in(sql, copy, options),
        };
        let mut copying = begun.map_err(|error| reported("", &error))?;
        self.announce_copy(b'G', width, rows.is_some());
        self.out.flush().await?;
        loop {
            let message = tokio::select! {
                biased;
                message = self.input.next() => message,
                () = copying.cancelled() => Ok(Some(Message::CopyDone)),
                () = self.stop.wait() => {
                    let message = "terminating connection due to administrator command";
                    return Err(Report::error("57P01", message).into());
                }
            };
            match message {
                Ok(Some(Message::CopyData(bytes))) => {
                    let text = match &mut rows {
                        Some(rows) => rows.text_of(&bytes)?,
                        None => bytes.to_vec(),
                    };
                    if !copying.write(text).await {
                        break;
                    }
                }
                Ok(Some(Message::CopyDone)) => {
                    rows.as_ref().map_or(Ok(()), Incoming::finish)?;
                    break;
                }
                Ok(Some(Message::CopyFail(why))) => {
                    return Err(Report::error("57014", format!("COPY from stdin failed: {why}")).into());
                }
                // Clients may send them before they know that rows are wanted.
                Ok(Some(Message::Flush | Message::Sync)) => {}
                Ok(None | Some(Message::Terminate)) => return Err(gone().into()),
                Ok(Some(_)) => {
                    return Err(Report::error("08P01", "unexpected message during COPY from stdin").into());
                }
                Err(Malformed::Io(error)) => return Err(error.into()),
                Err(Malformed::Fatal(text) | Malformed::Message(text)) => {
                    return Err(Report::error("08P01", text).into());
                }
                Err(Malformed::Memory(text)) => return Err(Report::error("53200", text).into()),
            }
        }
        let copied = tokio::select! {
            biased;
            copied = copying.finish() => copied,
            () = self.input.closed() => return Err(gone().into()),
        };
        let rows = copied.map_err(|error| reported("", &error))?;
        self.changed(&format!("COPY {rows}"), rows);
        Ok(())
    }

    /// So many columns, all of them text or binary.
    fn announce_copy(&mut self, tag: u8, width: usize, is_binary: bool) {
        self.out.message(tag, |body| {
            body.push(u8::from(is_binary));
            body.extend_from_slice(&(width as u16).to_be_bytes());
            (0..width).for_each(|_| body.extend_from_slice(&u16::from(is_binary).to_be_bytes()));
        });
    }

    async fn copy_out(&mut self, sql: &str, copy: &Copy) -> Step {
        let is_csv = copy.format == Some(CopyFormat::Csv);
        let is_binary = copy.format == Some(CopyFormat::Binary);
        let style = Style {
            is_binary,
            begins: AtomicBool::new(is_binary),
            is_csv,
            delimiter: copy.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' }),
            null: copy.null.clone().unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() }),
        };
        let Response::Rows(rows) = self.start(sql, &copy.query(), Vec::new()).await? else {
            return Err(Report::error("42601", "COPY takes the rows of a query").into());
        };
        let columns = columns(&rows.columns, &rows.schema);
        self.announce_copy(b'H', columns.len(), is_binary);
        if copy.header == Some(true) {
            self.out.message(b'd', |body| {
                for (n, column) in columns.iter().enumerate() {
                    if n > 0 {
                        body.push(style.delimiter);
                    }
                    style.push(body, column.name.as_bytes());
                }
                body.push(b'\n');
            });
        }
        let sent = self.send_copied(rows, &columns, &style).await?;
        if is_binary {
            self.out.message(b'd', |body| {
                style.push_header(body);
                body.extend_from_slice(&(-1_i16).to_be_bytes());
            });
        }
        self.out.empty(b'c');
        self.complete(&format!("COPY {sent}"));
        Ok(())
    }

    async fn send_copied(&mut self, mut rows: Rows, columns: &[Column], style: &Style) -> Step<u64> {
        let mut sent = 0;
        loop {
            let next = tokio::select! {
                biased;
                next = rows.stream.next() => next,
                () = self.input.closed() => return Err(gone().into()),
            };
            let Some(batch) = next else { break };
            let batch = batch.map_err(|error| reported("", &error))?;
            let arrays = columns.iter().zip(batch.columns()).map(|(c, a)| canonical(c, a));
            let arrays: Vec<ArrayRef> = arrays.collect::<Done<_>>().map_err(|error| reported("", &error))?;
            let mut row = 0;
            while row < batch.num_rows() {
                let pushed = self.push_copied(columns, &arrays, row..batch.num_rows(), style);
                row = pushed.map_err(|error| reported("", &error))?;
                self.out.flush_if_much().await?;
            }
            sent += batch.num_rows() as u64;
        }
        add(&self.shared.counters.query_rows, sent);
        Ok(sent)
    }

    /// Writes rows, a message each, until much is waiting to be sent; gives the next one.
    fn push_copied(
        &mut self,
        columns: &[Column],
        arrays: &[ArrayRef],
        rows: std::ops::Range<usize>,
        style: &Style,
    ) -> Done<usize> {
        let cells = columns.iter().zip(arrays).map(|(c, array)| Cells::new(c.pg_type, c.is_ipv4, array.as_ref()));
        let cells: Vec<Cells> = cells.collect();
        let mut text = Vec::new();
        for row in rows.clone() {
            if self.out.has_much() {
                return Ok(row);
            }
            if style.is_binary {
                let mut done = Ok(());
                self.out.message(b'd', |body| {
                    style.push_header(body);
                    body.extend_from_slice(&(cells.len() as i16).to_be_bytes());
                    done = cells.iter().try_for_each(|cells| cells.write(row, true, body));
                });
                done?;
                continue;
            }
            self.out.message(b'd', |body| {
                for (n, cells) in cells.iter().enumerate() {
                    if n > 0 {
                        body.push(style.delimiter);
                    }
                    if cells.is_null(row) {
                        body.extend_from_slice(style.null.as_bytes());
                        continue;
                    }
                    text.clear();
                    cells.push_text(row, &mut text);
                    style.push(body, &text);
                }
                body.push(b'\n');
            });
        }
        Ok(rows.end)
    }
}

/// The columns that rows bring, and how they are sent.
fn sent_columns(schema: &TableSchema, named: &[Name]) -> Vec<(String, PgType)> {
    let sent = |column: &ColumnSchema| (column.name.clone(), pg_type::of(column.column_type));
    match named.is_empty() {
        true => schema.columns.iter().map(sent).collect(),
        false => named.iter().filter_map(|name| schema.column(&name.text).map(sent)).collect(),
    }
}

/// As which binary rows are handed on.
fn as_csv(copy: Copy) -> Copy {
    Copy {
        format: Some(CopyFormat::Csv),
        header: Some(false),
        delimiter: Some(b','),
        null: Some(copy_binary::NULL.to_owned()),
        ..copy
    }
}

impl Style {
    /// In the message of the first row, where psycopg looks for it.
    fn push_header(&self, out: &mut Vec<u8>) {
        if self.begins.swap(false, Ordering::Relaxed) {
            copy_binary::push_header(out);
        }
    }

    /// A field that is not NULL.
    fn push(&self, out: &mut Vec<u8>, text: &[u8]) {
        if !self.is_csv {
            return text.iter().for_each(|byte| self.push_escaped(out, *byte));
        }
        let is_plain = text != self.null.as_bytes()
            && text != b"\\."
            && !text.iter().any(|b| *b == self.delimiter || matches!(b, b'"' | b'\n' | b'\r'));
        if is_plain {
            return out.extend_from_slice(text);
        }
        out.push(b'"');
        for byte in text {
            if *byte == b'"' {
                out.push(b'"');
            }
            out.push(*byte);
        }
        out.push(b'"');
    }

    fn push_escaped(&self, out: &mut Vec<u8>, byte: u8) {
        let short = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            other if other == self.delimiter => other,
            other => return out.push(other),
        };
        out.extend_from_slice(&[b'\\', short]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(style: &Style, text: &str) -> String {
        let mut out = Vec::new();
        style.push(&mut out, text.as_bytes());
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn fields_are_written_as_postgresql_reads_them() {
        let style = |is_csv, delimiter, null: &str| Style {
            is_binary: false,
            begins: AtomicBool::new(false),
            is_csv,
            delimiter,
            null: null.to_owned(),
        };
        let text = style(false, b'\t', "\\N");
        assert_eq!(field(&text, "a\tb\\N\nc"), "a\\tb\\\\N\\nc");
        assert_eq!(field(&Style { delimiter: b'|', ..text }, "a|b"), "a\\|b");
        let csv = style(true, b',', "");
        for (given, written) in
            [("a", "a"), ("", "\"\""), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("\\.", "\"\\.\"")]
        {
            assert_eq!(field(&csv, given), written);
        }
        let csv = style(true, b',', "-");
        for (given, written) in [("", ""), ("-", "\"-\""), ("--", "--"), (" ", " ")] {
            assert_eq!(field(&csv, given), written);
        }
    }
}
