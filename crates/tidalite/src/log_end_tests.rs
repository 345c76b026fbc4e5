//! Tests the end of the log: a missing, truncated or zeroed last file is damage, the result of a power loss is not, and
//! folders of other formats and of other programs are rejected with errors that name the cause.

use crate::upkeep_tests::{ask, back_up, check, config, create, files, insert, open, repair};
use crate::{Database, ErrorKind};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_ingest::wal::mark;
use tidalite_storage::fs::Fs;
use tidalite_storage::fs::faulty::SimFs;

/// Returns the log files in order.
fn log(fs: &SimFs) -> Vec<PathBuf> {
    let is_file = |path: &PathBuf| !path.to_string_lossy().contains("spare");
    files(fs, Path::new("wal")).into_iter().filter(is_file).collect()
}

/// Returns a folder whose log has several files with commits that exist nowhere else, and the number of rows.
fn folder() -> (SimFs, usize) {
    let fs = SimFs::new(3);
    let db = open(&fs).unwrap();
    create(&db, "t");
    // The file with the command is large; the files with rows are small.
    db.close().unwrap();
    let db = open(&fs).unwrap();
    for n in 0..60 {
        insert(&db, "t", n * 20..n * 20 + 20);
    }
    // The jobs thread does this every second.
    db.shared().log_mark.write().unwrap();
    let left = fs.killed();
    assert!(log(&left).len() > 2, "{:?}", log(&left));
    (left, 1200)
}

fn set(fs: &SimFs, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let file = fs.open_write(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    change(&mut bytes);
    file.set_len(0).unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    file.sync().unwrap();
}

fn refusal(fs: &SimFs) -> String {
    let error = open(fs).map(drop).expect_err("it is refused");
    assert_eq!(error.kind, ErrorKind::Corrupt);
    error.message
}

#[test]
fn an_end_of_the_log_that_is_gone_is_noticed() {
    let (whole, rows) = folder();
    let last = log(&whole).pop().unwrap();
    let name = last.display().to_string();
    type Damage<'a> = (&'a str, Box<dyn Fn(&SimFs) + 'a>, &'a str);
    let damages: [Damage<'_>; 4] = [
        ("deleted", Box::new(|fs| fs.remove(&last).unwrap()), "it is missing"),
        ("cut", Box::new(|fs| set(fs, &last, |bytes| bytes.truncate(64 + 40))), "it ends at commit"),
        ("emptied", Box::new(|fs| set(fs, &last, Vec::clear)), "its header does not match its checksum"),
        ("zeroed", Box::new(|fs| set(fs, &last, |bytes| bytes.fill(0))), "its header does not match its checksum"),
    ];
    for (what, damage, said) in damages {
        let fs = whole.survivor(1);
        damage(&fs);
        let refusal = refusal(&fs);
        assert!(refusal.starts_with(&name) && refusal.contains(said), "{what}: {refusal}");
        let problems = check(&fs).unwrap().problems;
        assert_eq!((problems.len(), &problems[0].file), (1, &name), "{what}: {problems:?}");
        assert!(problems[0].problem.contains(said), "{what}: {problems:?}");
        let report = repair(&fs).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(!report.lost.is_empty() && !report.done.is_empty(), "{what}: {report:?}");
        assert_eq!(check(&fs).unwrap().problems, [], "{what}");
        let db = open(&fs).unwrap();
        let left = ask(&db, "SELECT x FROM t").unwrap().len();
        assert!(left < rows && left % 20 == 0, "{what}: {left} rows");
        // Numbers of lost commits are not reused.
        let (txn, _) = db.all_tables();
        assert!(txn >= mark::read(&whole).unwrap().unwrap().txn, "{what}");
        insert(&db, "t", 9000..9010);
        drop(db);
        assert_eq!(ask(&open(&fs).unwrap(), "SELECT x FROM t").unwrap().len(), left + 10, "{what}");
    }
    assert_eq!(ask(&open(&whole).unwrap(), "SELECT x FROM t").unwrap().len(), rows, "the whole one opens");
}

#[test]
fn the_whole_folder_of_the_log_is_missed() {
    let (fs, _) = folder();
    for path in files(&fs, Path::new("wal")) {
        fs.remove(&path).unwrap();
    }
    assert!(refusal(&fs).contains("it is missing"));
}

#[test]
fn power_loss_at_any_operation_is_not_taken_for_a_log_that_was_cut() {
    let story = |db: &Database| -> usize {
        let mut done = 0;
        for n in 0..30 {
            let sql = format!("INSERT INTO t VALUES ('2024-01-01', {n}, '{}')", "x".repeat(1500));
            if ask(db, &sql).is_err() {
                break;
            }
            done += 1;
            // Like the jobs thread; a failed write is retried.
            if n % 3 == 0 {
                let _ = db.shared().log_mark.write();
            }
            if n % 10 == 9 {
                let _ = db.settle();
            }
        }
        let _ = db.close();
        done
    };
    let begin = || {
        let fs = SimFs::new(11);
        let db = open(&fs).unwrap();
        ask(&db, "CREATE TABLE t (ts TIMESTAMP, x LONG, s VARCHAR) TIMESTAMP(ts) PARTITION BY DAY").unwrap();
        db.close().unwrap();
        fs
    };
    let whole = begin();
    let before = whole.operations();
    assert_eq!(story(&open(&whole).unwrap()), 30);
    let (operations, mut marked) = (whole.operations() - before, 0);
    assert!(log(&whole).len() + files(&whole, Path::new("wal")).len() > 3, "rotations");
    for operation in 0..operations {
        let fs = begin();
        fs.crash_at(fs.operations() + operation);
        let done = open(&fs).map_or(0, |db| story(&db));
        for seed in 0..3 {
            let left = fs.survivor(seed);
            let what = format!("operation {operation}, {seed}");
            assert_eq!(check(&left).unwrap().problems, [], "{what}");
            let db = open(&left).unwrap_or_else(|e| panic!("{what}: {e}"));
            let found = ask(&db, "SELECT x FROM t").unwrap().len();
            assert!((done..=done + 1).contains(&found), "{what}: {found} of {done}");
            marked += usize::from(mark::read(&left).unwrap().is_some());
        }
    }
    assert!(marked > operations as usize, "most folders have a mark: {marked} of {operations} times 3");
}

#[test]
fn a_folder_without_a_mark_opens_and_gets_one() {
    let (fs, rows) = folder();
    fs.remove(Path::new(mark::PATH)).unwrap();
    let db = open(&fs).unwrap();
    assert_eq!(ask(&db, "SELECT x FROM t").unwrap().len(), rows);
    assert!(mark::read(&fs).unwrap().is_some());
    assert!(log(&fs).len() > 2);
    insert(&db, "t", 5000..5010);
    db.settle().unwrap();
    assert_eq!(log(&fs).len(), 1, "a checkpoint releases the others");
}

#[test]
fn folders_of_other_formats_and_programs_are_named_as_such() {
    let opened = |fs: &SimFs| open(fs).map(drop).unwrap_err();
    let (fs, _) = folder();
    let manifest = files(&fs, Path::new("")).into_iter().find(|f| f.to_string_lossy().starts_with("manifest-"));
    let manifest = manifest.unwrap();
    let newer = fs.survivor(0);
    set(&newer, &manifest, |bytes| bytes[7] = b'9');
    let before = newer.operations();
    for error in [opened(&newer), check(&newer).unwrap_err(), repair(&newer).unwrap_err()] {
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(error.message.contains("another release of Tidalite (format 9"), "{error}");
        assert!(!error.message.contains("corrupt") && error.message.contains("reads formats 1 to 3"), "{error}");
    }
    let changes = newer.history().into_iter().skip(before as usize).filter(|op| op.what != "sync_dir");
    assert_eq!(changes.map(|op| op.what).collect::<Vec<_>>(), [""; 0], "nothing of it is touched");
    let newer_log = fs.survivor(0);
    set(&newer_log, &log(&newer_log)[0], |bytes| bytes[7] = b'2');
    let error = opened(&newer_log);
    assert!(error.kind == ErrorKind::Conflict && error.message.contains("newer release"), "{error}");

    let foreign = SimFs::new(1);
    for name in ["PG_VERSION", "base", "notes.txt", ".hidden"] {
        foreign.create(Path::new(name)).unwrap();
    }
    let error = opened(&foreign);
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.message.contains("not a data folder of Tidalite") && error.message.contains("PG_VERSION"), "{error}");
    assert!(error.message.ends_with("and 2 others"), "{error}");
    let hidden = SimFs::new(1);
    hidden.create(Path::new(".hidden")).unwrap();
    hidden.create_dir_all(Path::new("lost+found")).unwrap();
    open(&hidden).unwrap();
    let lost = fs.survivor(0);
    lost.remove(&manifest).unwrap();
    assert!(opened(&lost).message.contains("no manifest"));
}

#[test]
fn a_backup_refuses_what_earlier_ones_lost() {
    let source = SimFs::new(1);
    let db = open(&source).unwrap();
    create(&db, "t");
    insert(&db, "t", 0..50);
    db.settle().unwrap();
    let to = SimFs::new(2);
    back_up(&db, &to).unwrap();
    insert(&db, "t", 50..60);
    let good = to.survivor(0);
    assert!(back_up(&db, &good).unwrap().files_shared > 1);
    let destination = |fs: &SimFs| crate::destination::Folder::new(Arc::new(fs.clone()), "sim".to_owned());
    let verified = |fs: &SimFs| crate::backup::verify_backups(&destination(fs), &mut |_, _| Ok(())).unwrap();
    let report = verified(&good);
    assert_eq!((report.backups, report.problems.len()), (2, 0), "{report:?}");
    let segment = files(&to, Path::new("segments")).remove(0);
    let name = segment.display().to_string();
    type Damage<'a> = (Box<dyn Fn(&SimFs) + 'a>, &'a str);
    let damages: [Damage<'_>; 3] = [
        (Box::new(|fs| fs.remove(&segment).unwrap()), "is missing"),
        (Box::new(|fs| set(fs, &segment, |bytes| bytes.truncate(100))), "has 100 bytes instead of"),
        (Box::new(|fs| set(fs, &segment, |bytes| bytes[70] ^= 1)), "does not match its checksum"),
    ];
    for (damage, said) in damages {
        let bad = to.survivor(0);
        damage(&bad);
        let error = back_up(&db, &bad).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(error.message.contains(&name) && error.message.contains(said), "{error}");
        let report = verified(&bad);
        assert_eq!((report.backups, report.problems.len()), (1, 1), "{report:?}");
        assert!(report.problems[0].starts_with(&format!("{name} {said}")), "{report:?}");
    }
}

#[test]
fn a_full_disk_leaves_the_mark_for_later() {
    let fs = SimFs::new(9);
    let operations = {
        let probe = SimFs::new(9);
        drop(open(&probe).unwrap());
        let is_mark = |path: &Path| path == Path::new(mark::PATH);
        let found = probe.history().iter().position(|op| is_mark(&op.path) && op.what == "create");
        found.expect("the mark is made at the first open") as u64
    };
    fs.fail_at(operations + 1, io::ErrorKind::StorageFull);
    let db = Database::open_on(Arc::new(fs.clone()), config(), None).unwrap();
    assert!(fs.take_failed().iter().any(|op| op.path == Path::new(mark::PATH)), "the first try failed");
    assert!(mark::read(&fs).unwrap().is_some(), "the next one did not");
    create(&db, "t");
    insert(&db, "t", 0..10);
    db.settle().unwrap();
}
