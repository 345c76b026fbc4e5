//! CSV to a server: pieces of the file, several requests at once, committed in the order of the file.
//!
//! The first piece goes alone: it makes the table, or finds it, and what its columns are is found out once. Every piece
//! carries the names; the server parses pieces as they come and commits each in its turn.
//!
//! One thread reads and cuts, some send; the caller's adds up. Nobody waits for them when the import ends early.

use super::args::ImportArgs;
use super::report::{Rejects, Report};
use super::source::Reader;
use crate::http::imports::{Answer, AnswerColumn, Rejected};
use crate::shell::target::Server;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tidalite::import::{CsvPlan, DateOrder, Known, OnBad, Piece, Pieces, Progress, Text, column_type, lines_of};

/// Text of a request.
const PIECE_BYTES: usize = 4 << 20;

/// What all requests have in common.
struct Upload {
    server: Server,
    path: String,
    names: Vec<u8>,
    /// Of the names.
    lines: u64,
}

impl Upload {
    fn send(&self, piece: &Piece) -> Result<Answer, String> {
        let Piece { number, lines_before, text } = piece;
        // What the first made must not be made again when somebody drops it meanwhile.
        let create = if *number == 0 { "" } else { "&create=false" };
        let path = format!("{}{create}&piece={number}&line={}", self.path, lines_before - self.lines);
        let reply = self.server.post(&path, "text/csv", &[&self.names, text.as_slice()].concat())?;
        let answer: Answer = serde_json::from_str(&reply).map_err(|_| reply.trim().to_owned())?;
        match (answer.status.as_str(), answer.line) {
            ("OK", _) => Ok(answer),
            (status, Some(line)) if !status.starts_with("line ") => Err(format!("line {line}: {status}")),
            (status, _) => Err(status.to_owned()),
        }
    }
}

/// What is known of the pieces so far.
struct Sum<'a> {
    progress: Progress,
    rejects: &'a mut Rejects,
    report: &'a Report,
    rejects_max: Option<u64>,
}

impl Sum<'_> {
    fn add(&mut self, bytes: usize, answer: Result<Answer, String>) -> Result<(), String> {
        let answer = answer.map_err(|problem| match self.progress.rows {
            0 => problem,
            rows => format!("{problem}; {rows} rows of it are in the table"),
        })?;
        self.progress.rows += answer.rows_imported;
        self.progress.bad += answer.rows_rejected;
        self.progress.nulled += answer.values_nulled;
        self.progress.bytes += bytes as u64;
        self.report.progress(self.progress.rows, self.progress.bad);
        for bad in answer.rejected.iter().chain(&answer.nulled) {
            let Rejected { line, position, column, reason, record, record_base64 } = bad;
            let raw = record_base64.as_ref().and_then(|text| STANDARD.decode(text).ok());
            let record = raw.as_deref().or(record.as_deref().map(str::as_bytes));
            self.rejects.write(*line, *position, column.as_deref(), reason, record)?;
        }
        if let Some(max) = self.rejects_max
            && self.progress.bad + self.progress.nulled > max
        {
            return Err(format!(
                "more than {max} records are left out or values NULL, the limit of --max-rejects; {} rows of it are in the \
                 table",
                self.progress.rows
            ));
        }
        let missing = answer.rows_rejected.saturating_sub(answer.rejected.len() as u64);
        if missing > 0 && self.rejects.has_file() {
            return Err(format!(
                "the server left out {missing} records more than it can name, so that --rejects cannot have them; {} rows \
                 of it are in the table",
                self.progress.rows
            ));
        }
        Ok(())
    }
}

type Sent = (u64, usize, Result<Answer, String>);

/// `names` is the first record, where that has them; `text` what stands behind.
pub fn upload(
    server: Server,
    plan: &CsvPlan,
    names: &[u8],
    text: Reader,
    asked: &ImportArgs,
    rejects: &mut Rejects,
    report: &Report,
) -> Result<Progress, String> {
    let more = format!("&import={}{}", id(), if rejects.has_file() { "&rejects=all" } else { "" });
    let path = path_of(plan, asked, None) + &more;
    // The names are a line of their own, whatever stands before them in the file.
    let mut names = names.to_vec();
    if !names.is_empty() && !names.ends_with(b"\n") {
        names.push(b'\n');
    }
    let lines = lines_of(&names);
    let mut upload = Upload { server, path, names, lines };
    let mut pieces = Pieces::new(text, &plan.detected.format, plan.lines_before, PIECE_BYTES);
    let mut sum = Sum { progress: Progress::default(), rejects, report, rejects_max: plan.rejects_max };
    let first = pieces.next().transpose().map_err(|e| e.message)?;
    let first = first.unwrap_or(Piece { number: 0, lines_before: plan.lines_before, text: Vec::new() });
    let answer = upload.send(&first);
    if let Ok(answer) = &answer {
        upload.path = path_of(plan, asked, Some(answer)) + &more;
    }
    sum.add(first.text.len(), answer)?;
    drop(first);
    let (to_senders, todo) = sync_channel(1);
    let (to_sum, sent) = channel();
    let (to_end, end) = sync_channel(1);
    start(move || {
        // Nobody listens when the import ended early.
        let _ = to_end.send(read(pieces, &to_senders));
    })?;
    let (upload, todo) = (Arc::new(upload), Arc::new(Mutex::new(todo)));
    for _ in 0..asked.threads.clamp(2, crate::shell::target::CONNECTIONS) {
        let (upload, todo, to_sum) = (upload.clone(), todo.clone(), to_sum.clone());
        start(move || send_pieces(&upload, &todo, &to_sum))?;
    }
    drop(to_sum);
    let (mut early, mut next) = (BTreeMap::new(), 1);
    for (number, bytes, answer) in sent {
        early.insert(number, (bytes, answer));
        while let Some((bytes, answer)) = early.remove(&next) {
            next += 1;
            sum.add(bytes, answer)?;
        }
    }
    match end.recv() {
        Ok(count) if count == next => Ok(sum.progress),
        _ => Err(format!("reading or sending the file panicked; {} rows of it are in the table", sum.progress.rows)),
    }
}

fn start(run: impl FnOnce() + Send + 'static) -> Result<(), String> {
    tidalite::spawn_detached("import", run).map_err(|e| format!("could not start a thread: {e}"))
}

/// How many there are, the first included. An error takes the place of the piece that could not be read.
fn read(pieces: Pieces, to: &SyncSender<(u64, Result<Piece, String>)>) -> u64 {
    let mut count = 1;
    for piece in pieces {
        if to.send((count, piece.map_err(|e| e.message))).is_err() {
            break;
        }
        count += 1;
    }
    count
}

fn send_pieces(upload: &Upload, todo: &Mutex<Receiver<(u64, Result<Piece, String>)>>, to: &Sender<Sent>) {
    loop {
        let next = todo.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, piece)) = next else { return };
        let (bytes, answer) = match piece {
            Ok(piece) => (piece.text.len(), upload.send(&piece)),
            Err(problem) => (0, Err(problem)),
        };
        if to.send((number, bytes, answer)).is_err() {
            return;
        }
    }
}

/// Unlike that of any other import.
fn id() -> String {
    format!("{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1))
}

/// The columns of the table, when the server has said what they are and how they are written.
fn columns_of(answer: &Answer) -> Option<String> {
    let one = |c: &AnswerColumn| {
        column_type(&c.type_name).ok()?;
        let format = c.format.as_ref().map_or_else(String::new, |f| format!(" '{}'", f.replace('\'', "''")));
        Some(format!("\"{}\" {}{format}", c.name, c.type_name))
    };
    answer.columns.iter().map(one).collect::<Option<Vec<_>>>().map(|all| all.join(", "))
}

fn given_columns(known: &Known) -> String {
    let format = |name: &str| {
        let time = known.formats.iter().find(|(n, _)| n == name).map(|(_, f)| f.to_string());
        let number = || known.numbers.iter().find(|(n, _)| n == name).map(|(_, f)| f.to_string());
        time.or_else(number).map_or_else(String::new, |f| format!(" '{}'", f.replace('\'', "''")))
    };
    let columns: Vec<String> = known.columns.iter().map(|(n, t)| format!("\"{n}\" {t}{}", format(n))).collect();
    columns.join(", ")
}

/// The request of a piece; `answer` is that to the first one, which all others are read as.
fn path_of(plan: &CsvPlan, asked: &ImportArgs, answer: Option<&Answer>) -> String {
    let options = &asked.options;
    let known = &options.known;
    let format = &plan.detected.format;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let character = |byte: u8| char::from(byte).to_string();
    let on_error = match options.on_bad {
        OnBad::Abort => "abort",
        OnBad::Skip => "skip",
        OnBad::Null => "null",
    };
    let found = answer.filter(|_| known.date_and_time.is_none()).and_then(columns_of);
    let detect = if found.is_some() { "no" } else { "types" };
    let order = |order: DateOrder| if order == DateOrder::DayFirst { "dmy" } else { "mdy" }.to_owned();
    // A NULL string may contain a comma.
    let one_null = known.nulls.as_ref().filter(|nulls| nulls.len() == 1).and_then(|nulls| nulls.first());
    let one_null = one_null.filter(|null| !null.is_empty());
    let given = [
        ("fmt", Some("json".to_owned())),
        ("name", Some(plan.table.clone())),
        ("encoding", Some("utf-8".to_owned())),
        ("compression", Some("none".to_owned())),
        ("detect", Some(detect.to_owned())),
        ("delimiter", Some(character(format.delimiter))),
        ("quote", Some(character(format.quote))),
        ("comment", format.comment.map(character)),
        ("header", Some(yes(plan.detected.has_names()))),
        ("columns", Some(found.unwrap_or_else(|| given_columns(known))).filter(|c| !c.is_empty())),
        ("timestamp", known.timestamp.clone()),
        ("timestampFormat", known.timestamp_format.as_ref().map(ToString::to_string)),
        ("dateTime", known.date_and_time.as_ref().map(|(date, time)| format!("{date},{time}"))),
        ("partitionBy", options.partition_by.map(|p| p.to_string())),
        ("null", one_null.cloned()),
        ("nulls", known.nulls.as_ref().filter(|_| one_null.is_none()).map(|nulls| nulls.join(","))),
        ("decimal", known.has_decimal_comma.map(|comma| if comma { "," } else { "." }.to_owned())),
        ("thousands", known.thousands.map(|t| t.to_string())),
        ("dateOrder", known.date_order.map(order)),
        ("onError", Some(on_error.to_owned())),
        ("ignoreExtra", options.ignores_extra.then(|| yes(true))),
    ];
    let one = |(name, value): (&str, Option<String>)| Some(format!("{name}={}", encoded(&value?)));
    let all: Vec<String> = given.into_iter().filter_map(one).collect();
    format!("/imp?{}", all.join("&"))
}

/// Prints the plan of the server without importing: how the file is read, and the statement.
pub fn dry_run(
    server: &Server,
    plan: &CsvPlan,
    text: &Text,
    asked: &ImportArgs,
) -> Result<(Vec<(String, String)>, String), String> {
    let path = path_of(plan, asked, None) + "&dryRun=true";
    let rows = &text.head[plan.skipped_bytes..];
    let whole = if text.is_whole { rows.len() } else { memchr::memrchr(b'\n', rows).map_or(0, |at| at + 1) };
    let reply = server.post(&path, "text/csv", &[plan.names(&text.head), &rows[..whole]].concat())?;
    let answer: Answer = serde_json::from_str(&reply).map_err(|_| reply.trim().to_owned())?;
    match answer.statement {
        Some(statement) => Ok((answer.found, statement)),
        None => Err(answer.status),
    }
}

/// For a URL.
fn encoded(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes().map(|b| if is_plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}
