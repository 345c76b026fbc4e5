use super::*;
use crate::{Database, DatabaseConfig, Error, ErrorKind, Result};
use futures::FutureExt;
use futures::executor::block_on;
use std::io::{Cursor, Read};
use std::sync::mpsc::{Receiver, channel};
use tidalite_types::{Command, PartitionBy, Values};

/// Returns about six pieces of numbered rows.
fn numbers() -> String {
    let mut text = "n,text\n".to_owned();
    (0..700_000).for_each(|i| text += &format!("{i},\"a\nb{}\"\n", i % 7));
    text
}

fn plan_of(text: &str) -> CsvPlan {
    let sample = &text.as_bytes()[..text.len().min(1 << 20)];
    CsvPlan::new(sample, sample.len() == text.len(), "t", None, Known::default(), None).unwrap()
}

fn import(text: &str, on_bad: OnBad, threads: usize) -> (Result<Progress>, Vec<i64>, Vec<String>) {
    let plan = plan_of(text);
    let reader = Box::new(Cursor::new(text.as_bytes()[plan.skipped_bytes..].to_vec()));
    let (mut values, mut bad) = (Vec::new(), Vec::new());
    let commit = |batch: tidalite_types::Batch| {
        let Values::I64(longs) = &batch.columns[0].column.values else { panic!("no longs") };
        values.extend_from_slice(longs);
        futures::future::ready(Ok(())).boxed()
    };
    let told = |found: Option<&Bad>, _| {
        bad.extend(found.map(ToString::to_string));
        Ok(())
    };
    let done = import_csv(&plan, reader, threads, on_bad, commit, told);
    (done, values, bad)
}

#[test]
fn pieces_are_committed_in_their_order() {
    let text = numbers();
    for threads in [1, 3] {
        let (done, values, bad) = import(&text, OnBad::Abort, threads);
        let bytes = (text.len() - "n,text\n".len()) as u64;
        assert_eq!(done.unwrap(), Progress { bytes, rows: 700_000, ..Progress::default() });
        assert!(values.iter().copied().eq(0..700_000), "{threads} threads");
        assert!(bad.is_empty());
    }
}

#[test]
fn bad_records_are_told_with_their_line_in_the_file_or_end_the_import() {
    // Every row has two lines.
    let text = numbers().replace("500000,\"", "5x,\"").replace("\n600000,", "\n");
    let (done, values, bad) = import(&text, OnBad::Skip, 2);
    assert_eq!(done.unwrap().rows, 699_998);
    assert_eq!(values.len(), 699_998);
    let expected = [
        "line 1000002, position 1, column \"n\": invalid input syntax for type LONG: \"5x\"",
        "line 1200002, position 1, column \"n\": invalid input syntax for type LONG: \"a\\nb2\"",
    ];
    assert_eq!(bad, expected);
    let (done, values, _) = import(&text, OnBad::Abort, 2);
    let error = done.unwrap_err();
    assert_eq!((error.message.as_str(), error.line), (expected[0], Some(1_000_002)));
    assert!(values.len() < 500_000 && values.iter().copied().eq(0..values.len() as i64));
    assert_eq!(error.hint.unwrap(), format!("{} rows of it are in the table", values.len()));
}

#[test]
fn a_reader_that_fails_and_a_commit_that_is_refused_end_the_import() {
    struct Broken(usize);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::Error::other("the disk is gone"));
            }
            self.0 -= 1;
            buffer.fill(b'\n');
            Ok(buffer.len())
        }
    }
    let plan = plan_of("n\n1\n");
    let ready = |_| futures::future::ready(Ok(())).boxed();
    let error = import_csv(&plan, Box::new(Broken(3)), 2, OnBad::Skip, ready, |_, _| Ok(())).unwrap_err();
    assert_eq!(error.message, "could not be read: the disk is gone");
    let refuse = |_| futures::future::ready(Err(Error::new(ErrorKind::Unavailable, "no room"))).boxed();
    let text = "1\n".repeat(20 << 20);
    let error = import_csv(&plan, Box::new(Cursor::new(text)), 2, OnBad::Skip, refuse, |_, _| Ok(())).unwrap_err();
    assert_eq!(error.message, "no room");
}

#[test]
fn a_table_is_created_by_what_the_file_shows_and_found_again_by_the_next_file() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(DatabaseConfig::new(folder.path())).unwrap();
    let text = "\u{feff}ts,s,v\n2026-01-01T00:00:00Z,a,1.5\n2026-01-01T00:00:01Z,b,\n2026-01-01T00:00:02Z,a,2\n";
    for round in 1..=2 {
        let schema = database.table("T");
        let plan =
            CsvPlan::new(text.as_bytes(), true, "t", schema.as_deref(), Known::default(), Some(PartitionBy::Month));
        let plan = plan.unwrap();
        assert_eq!(plan.create.is_some(), round == 1);
        if let Some(create) = plan.create.clone() {
            assert_eq!((create.designated.as_deref(), create.partition_by), (Some("ts"), PartitionBy::Month));
            block_on(database.command(Command::CreateTable(create))).unwrap();
        }
        let reader = Box::new(&text.as_bytes()[plan.skipped_bytes..]);
        let commit = |batch| database.commit(vec![batch]).map(|r| r.map(|_| ())).boxed();
        let done = import_csv(&plan, reader, 1, OnBad::Abort, commit, |_, _| Ok(())).unwrap();
        assert_eq!(done.rows, 3);
    }
    let committed = database.metrics().into_iter().find(|m| m.name == "tidalite_rows_committed_total");
    assert_eq!(committed.unwrap().value, 6.0);
    let types = Known { columns: vec![("v".to_owned(), tidalite_types::ColumnType::Long)], ..Known::default() };
    let error = CsvPlan::new(text.as_bytes(), true, "t", database.table("t").as_deref(), types, None).unwrap_err();
    assert_eq!(error.message, "column \"v\" of table \"t\" is of type DOUBLE, not LONG");
    block_on(database.execute("ALTER TABLE t ADD COLUMN raw BINARY", crate::QueryOptions::default())).unwrap();
    let text = b"ts,raw\n2026-01-01T00:00:00Z,x\n";
    let plan = CsvPlan::new(text, true, "t", database.table("t").as_deref(), Known::default(), None).unwrap();
    let commit = |batch| database.commit(vec![batch]).map(|r| r.map(|_| ())).boxed();
    let reader = Box::new(&text[plan.skipped_bytes..]);
    let error = import_csv(&plan, reader, 1, OnBad::Abort, commit, |_, _| Ok(())).unwrap_err();
    assert!(error.message.contains("invalid input syntax for type BINARY"), "{}", error.message);
    database.close().unwrap();
}

/// A reader of initial content and then of a channel, which ends only when the sender is dropped.
struct Waiting(Cursor<Vec<u8>>, Receiver<Vec<u8>>);

impl Read for Waiting {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.position() == self.0.get_ref().len() as u64 {
            match self.1.recv() {
                Ok(more) => self.0 = Cursor::new(more),
                Err(_) => return Ok(0),
            }
        }
        self.0.read(buffer)
    }
}

#[test]
fn an_import_that_ends_early_waits_for_no_input() {
    let (more, comes) = channel();
    let text = "1\n".repeat(2 << 20) + "x\n" + &"2\n".repeat(2 << 20);
    let reader = Box::new(Waiting(Cursor::new(text.into_bytes()), comes));
    let ready = |_| futures::future::ready(Ok(())).boxed();
    let error = import_csv(&plan_of("n\n1\n"), reader, 2, OnBad::Abort, ready, |_, _| Ok(())).unwrap_err();
    assert_eq!(error.line, Some((2 << 20) + 2));
    // The sender lives up to here.
    drop(more);
}

#[test]
fn a_reader_that_fails_says_what_is_in_the_table() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let reader = Box::new(Cursor::new("1\n".repeat(1 << 20).into_bytes()).chain(Broken));
    let ready = |_| futures::future::ready(Ok(())).boxed();
    let error = import_csv(&plan_of("n\n1\n"), reader, 2, OnBad::Skip, ready, |_, _| Ok(())).unwrap_err();
    assert_eq!(error.message, "could not be read: the disk is gone");
    assert_eq!(error.hint.as_deref(), Some("1048576 rows of it are in the table"));
}

#[test]
fn many_bad_records_are_told_in_parts_that_stay_in_order() {
    let record = |i: i64| if i % 2 == 0 { format!("{i},x\n") } else { format!("{i}x,x\n") };
    let text = "n,text\n1,a\n".to_owned() + &(0..400_000).map(record).collect::<String>();
    let plan = plan_of("n,text\n1,a\n");
    for on_bad in [OnBad::Skip, OnBad::Null] {
        let (mut lines, mut rows) = (Vec::new(), 0);
        let reader = Box::new(Cursor::new(text.as_bytes()[plan.skipped_bytes..].to_vec()));
        let commit = |batch: tidalite_types::Batch| {
            rows += batch.rows as u64;
            futures::future::ready(Ok(())).boxed()
        };
        let told = |bad: Option<&Bad>, _| {
            lines.extend(bad.map(|b| b.line));
            Ok(())
        };
        let done = import_csv(&plan, reader, 3, on_bad, commit, told).unwrap();
        assert!(lines.iter().copied().eq((0..200_000).map(|i| 2 * i + 4)), "{on_bad:?}");
        let expected = match on_bad {
            OnBad::Null => (400_001, 0, 200_000),
            _ => (200_001, 200_000, 0),
        };
        assert_eq!((done.rows, done.bad, done.nulled), expected);
        assert_eq!((rows, done.bytes), (done.rows, (text.len() - plan.skipped_bytes) as u64));
    }
}

#[test]
fn a_record_that_is_too_long_has_a_line() {
    let text = "1,2\n3,\"".to_owned() + &"x".repeat(5_000);
    let mut pieces = Pieces::new(Box::new(Cursor::new(text.into_bytes())), &CsvFormat::default(), 10, 1_000);
    pieces.record_bytes_max = 2_000;
    let first = pieces.next().unwrap().unwrap();
    assert_eq!((first.text.as_slice(), first.lines_before), (&b"1,2\n"[..], 10));
    let error = pieces.next().unwrap().unwrap_err();
    assert_eq!(error.line, Some(12));
    assert!(
        error.message.starts_with("line 12: a record, or a quoted field in it that is not closed, is longer than 2000")
    );
    assert!(pieces.next().is_none());
}
