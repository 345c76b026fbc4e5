//! COPY from and to the client: its rows as messages of their own between the statement and its end.
//!
//! Always: rows that come are parsed as fast as they are committed, and wait on the client's side; rows that go are
//! computed as they are sent. A client that breaks off, or leaves, has copied nothing that was not committed before.

use super::connection::{Session, Step, gone, reported};
use super::message::{Malformed, Message};
use super::reply::Report;
use super::types::{Column, columns};
use super::values::{Cells, canonical};
use crate::counters::add;
use arrow::array::ArrayRef;
use futures::StreamExt;
use tidalite::copy::{Copy, CopyFormat, CopyWhat, with_client};
use tidalite::{QueryOptions, Response, Result as Done, Rows};

/// How rows are written.
struct Style {
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
        let Some(schema) = self.shared.database.table(&table.text) else {
            let message = format!("table \"{}\" does not exist", table.text);
            let mut report = Report::error("42P01", message);
            report.position = Some(sql.get(..table.position).map_or(0, |before| before.chars().count()) + 1);
            return Err(report.into());
        };
        let width = if columns.is_empty() { schema.columns.len() } else { columns.len() };
        let options = QueryOptions {
            timeout: self.variables.timeout,
            client: self.client.to_owned(),
            parameters: Vec::new(),
            frames: Vec::new(),
        };
        let begun = self.shared.database.copy_in(sql, copy, options);
        let mut copying = begun.map_err(|error| reported("", &error))?;
        self.announce_copy(b'G', width);
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
                    if !copying.write(bytes.to_vec()).await {
                        break;
                    }
                }
                Ok(Some(Message::CopyDone)) => break,
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

    /// So many columns, all of them text.
    fn announce_copy(&mut self, tag: u8, width: usize) {
        self.out.message(tag, |body| {
            body.push(0);
            body.extend_from_slice(&(width as u16).to_be_bytes());
            (0..width).for_each(|_| body.extend_from_slice(&[0, 0]));
        });
    }

    async fn copy_out(&mut self, sql: &str, copy: &Copy) -> Step {
        let is_csv = copy.format == Some(CopyFormat::Csv);
        let style = Style {
            is_csv,
            delimiter: copy.delimiter.unwrap_or(if is_csv { b',' } else { b'\t' }),
            null: copy.null.clone().unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() }),
        };
        let Response::Rows(rows) = self.start(sql, &copy.query(), Vec::new()).await? else {
            return Err(Report::error("42601", "COPY takes the rows of a query").into());
        };
        let columns = columns(&rows.columns, &rows.schema);
        self.announce_copy(b'H', columns.len());
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
        self.out.empty(b'c');
        self.out.complete(&format!("COPY {sent}"));
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
                row = self.push_copied(columns, &arrays, row..batch.num_rows(), style);
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
    ) -> usize {
        let cells = columns.iter().zip(arrays).map(|(c, array)| Cells::new(c.pg_type, c.is_ipv4, array.as_ref()));
        let cells: Vec<Cells> = cells.collect();
        let mut text = Vec::new();
        for row in rows.clone() {
            if self.out.has_much() {
                return row;
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
        rows.end
    }
}

impl Style {
    /// A field that is not NULL.
    fn push(&self, out: &mut Vec<u8>, text: &[u8]) {
        if !self.is_csv {
            return text.iter().for_each(|byte| self.push_escaped(out, *byte));
        }
        let is_plain = !text.is_empty()
            && text != self.null.as_bytes()
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
        let text = Style { is_csv: false, delimiter: b'\t', null: "\\N".to_owned() };
        assert_eq!(field(&text, "a\tb\\N\nc"), "a\\tb\\\\N\\nc");
        assert_eq!(field(&Style { delimiter: b'|', ..text }, "a|b"), "a\\|b");
        let csv = Style { is_csv: true, delimiter: b',', null: String::new() };
        for (given, written) in
            [("a", "a"), ("", "\"\""), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("\\.", "\"\\.\"")]
        {
            assert_eq!(field(&csv, given), written);
        }
    }
}
