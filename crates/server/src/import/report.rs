//! What is shown of an import while it runs and when it is done, and the file of records left out.

use super::source::Source;
use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tidalite::import::Bad;

#[derive(Debug, Default)]
pub struct Done {
    pub tables: Vec<String>,
    pub rows: u64,
    pub bad: u64,
    pub nulled: u64,
    /// Of text, or of a Parquet file.
    pub bytes: u64,
    /// With `--dry-run`: what would be done.
    pub plan: Option<String>,
    /// And how the file is read.
    pub found: Vec<(String, String)>,
}

pub struct Report {
    is_json: bool,
    is_shown: bool,
    name: String,
    started: Instant,
    bar: Option<(ProgressBar, std::sync::Arc<std::sync::atomic::AtomicU64>)>,
}

impl Report {
    pub fn new(matches: &ArgMatches) -> Report {
        Report {
            is_json: matches.get_flag("json"),
            is_shown: !matches.get_flag("quiet") && std::io::stderr().is_terminal(),
            name: String::new(),
            started: Instant::now(),
            bar: None,
        }
    }

    pub fn begin(&mut self, source: &Source) {
        self.name.clone_from(&source.name);
        self.started = Instant::now();
        if self.is_shown {
            let template = match source.bytes {
                Some(_) => "{wide_bar} {bytes}/{total_bytes} {msg} ({eta})",
                None => "{spinner} {bytes} {msg}",
            };
            let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
            let bar = source.bytes.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style);
            self.bar = Some((bar, source.read.clone()));
        }
    }

    pub fn progress(&self, rows: u64, bad: u64) {
        if let Some((bar, read)) = &self.bar {
            bar.set_position(read.load(Relaxed));
            let rate = rows as f64 / self.started.elapsed().as_secs_f64();
            let left_out = if bad > 0 { format!(", {bad} left out") } else { String::new() };
            bar.set_message(format!("{rows} rows, {rate:.0} rows/s{left_out}"));
        }
    }

    pub fn end(&mut self, done: &Done) {
        let seconds = self.started.elapsed().as_secs_f64();
        if let Some((bar, _)) = self.bar.take() {
            bar.finish_and_clear();
        }
        if let Some(plan) = &done.plan {
            if self.is_json {
                let found: serde_json::Map<_, _> =
                    done.found.iter().map(|(k, v)| (k.clone(), v.as_str().into())).collect();
                print_out!("{}", serde_json::json!({ "file": self.name, "found": found, "statement": plan }));
            } else {
                done.found.iter().for_each(|(what, found)| print_out!("-- {what}: {}", found.replace('\n', "\\n")));
                print_out!("{plan}");
            }
            return;
        }
        let Done { tables, rows, bad, nulled, bytes, .. } = done;
        let (rate, mib) = (*rows as f64 / seconds, *bytes as f64 / seconds / (1 << 20) as f64);
        if self.is_json {
            let object = serde_json::json!({
                "file": self.name, "tables": tables, "rows": rows, "left_out": bad, "nulled": nulled, "bytes": bytes,
                "seconds_until_durable": seconds, "rows_per_second": rate,
            });
            print_out!("{object}");
        } else {
            print_out!("{}: {rows} rows durable in {seconds:.2} s ({rate:.0} rows/s, {mib:.0} MiB/s)", self.name);
        }
    }
}

/// Records left out: each as it was written, after a comment with its place and the reason.
pub struct Rejects {
    file: Option<(BufWriter<File>, String)>,
    shown: u32,
}

/// Without a file so many are shown.
const SHOWN_MAX: u32 = 10;

impl Rejects {
    /// What an earlier command left in the file is lost.
    pub fn new(path: Option<&str>) -> Result<Rejects, String> {
        let create = |path: &str| {
            let file = File::create(path).map_err(|e| format!("could not write {path}: {e}"))?;
            Ok::<_, String>((BufWriter::new(file), path.to_owned()))
        };
        Ok(Rejects { file: path.map(create).transpose()?, shown: 0 })
    }

    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    pub fn add(&mut self, bad: &Bad) -> Result<(), String> {
        let record = &bad.record;
        let text = (!record.is_row).then_some(record.record.as_slice());
        self.write(bad.line, record.position as u64, record.column.as_deref(), &record.reason, text)
    }

    /// Without a record a value became NULL.
    pub fn write(
        &mut self,
        line: u64,
        position: u64,
        column: Option<&str>,
        reason: &str,
        record: Option<&[u8]>,
    ) -> Result<(), String> {
        let column = column.map_or(String::new(), |c| format!(", column \"{c}\""));
        let place = format!("line {line}, position {position}{column}: {reason}");
        match &mut self.file {
            Some((file, path)) => {
                let text = match record {
                    Some(record) if record.ends_with(b"\n") => record,
                    Some(record) => &[record, b"\n"].concat(),
                    None => b"",
                };
                let became = if record.is_none() { " became NULL" } else { "" };
                let written = writeln!(file, "#{became} {place}").and_then(|()| file.write_all(text));
                written.map_err(|e| format!("could not write {path}: {e}"))
            }
            None => {
                self.shown += 1;
                if self.shown <= SHOWN_MAX {
                    print_err!("{}: {place}", if record.is_none() { "became NULL" } else { "left out" });
                }
                if self.shown == SHOWN_MAX {
                    print_err!("more are not shown: --rejects FILE has all of them");
                }
                Ok(())
            }
        }
    }

    pub fn flush(&mut self) -> Result<(), String> {
        match &mut self.file {
            Some((file, path)) => file.flush().map_err(|e| format!("could not write {path}: {e}")),
            None => Ok(()),
        }
    }
}
