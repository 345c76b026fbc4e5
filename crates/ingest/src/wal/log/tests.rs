use super::*;
use tidalite_storage::fs::faulty::SimFs;
use tidalite_types::TableId;

const FILE_BYTES: u64 = 4096;

fn disk() -> Arc<dyn Fs> {
    let fs: Arc<dyn Fs> = Arc::new(SimFs::new(1));
    fs.create_dir_all(Path::new(FOLDER)).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    fs
}

fn ops(count: usize) -> Vec<Op> {
    (0..count).map(|i| Op::Truncate { table: TableId(i as u32) }).collect()
}

fn open(fs: &Arc<dyn Fs>, from: Txn) -> Result<(LogWriter, Vec<(Txn, usize)>)> {
    let mut seen = Vec::new();
    let found = replay(&**fs, from, |txn, mut ops| {
        let mut count = 0;
        while let Some(Front::Op(Op::Truncate { .. })) = ops.next_front()? {
            count += 1;
        }
        seen.push((txn, count));
        Ok(())
    })?;
    let mut log = LogWriter::begin(fs.clone(), found, FILE_BYTES)?;
    log.bypass_cache(true);
    Ok((log, seen))
}

/// Writes commits with the given numbers of operations, each group synced.
fn write(log: &mut LogWriter, groups: &[&[usize]]) {
    let mut txn = log.txn;
    for group in groups {
        let mut records = Group::default();
        for &count in *group {
            txn = txn.next();
            records.push(txn, &ops(count));
        }
        log.reserve(records.byte_count() as u64).unwrap();
        log.append(&mut records).unwrap();
        log.sync().unwrap();
    }
}

fn files(fs: &Arc<dyn Fs>) -> Vec<String> {
    fs.list(Path::new(FOLDER)).unwrap()
}

#[test]
fn commits_come_back_in_order_over_many_files_and_openings() {
    let fs = disk();
    let mut expected = Vec::new();
    for round in 0..4 {
        let (mut log, seen) = open(&fs, Txn(0)).unwrap();
        assert_eq!(seen, expected, "round {round}");
        write(&mut log, &[&[1, 2], &[300], &[5], &[600, 1]]);
        for count in [1, 2, 300, 5, 600, 1] {
            expected.push((Txn(expected.len() as u64 + 1), count));
        }
    }
    let (_, seen) = open(&fs, Txn(20)).unwrap();
    assert_eq!(seen, expected[20..]);
    assert!(files(&fs).len() > 4, "{:?}", files(&fs));
}

#[test]
fn released_files_are_used_again_and_what_was_in_them_is_not_seen() {
    let fs = disk();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    for _ in 0..100 {
        write(&mut log, &[&[200]]);
        let txn = log.txn;
        log.release(Txn(txn.0 - 1));
        assert!(files(&fs).len() <= 3 + SPARES_MAX, "{:?}", files(&fs));
    }
    let last = log.txn;
    drop(log);
    let (_, seen) = open(&fs, Txn(last.0 - 1)).unwrap();
    assert_eq!(seen, [(last, 200)]);
}

#[test]
fn a_damaged_last_group_ends_the_log_and_damage_before_it_is_corruption() {
    for (damaged_group, is_corrupt) in [(2, false), (1, true), (0, true)] {
        let fs = disk();
        let (mut log, _) = open(&fs, Txn(0)).unwrap();
        let mut starts = Vec::new();
        for _ in 0..3 {
            starts.push(log.current.len);
            write(&mut log, &[&[3, 4]]);
        }
        let path = log.current.path.clone();
        drop(log);
        let file = fs.open_write(&path).unwrap();
        let at = starts[damaged_group] + RECORD_HEADER as u64 + 2;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
        match open(&fs, Txn(0)) {
            Ok((_, seen)) => {
                assert!(!is_corrupt, "group {damaged_group}");
                assert_eq!(seen.len(), 4, "the groups before it are all there");
            }
            Err(error) => {
                assert!(is_corrupt, "group {damaged_group}: {error}");
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            }
        }
    }
}

#[test]
fn a_full_disk_refuses_a_reservation_and_the_log_goes_on_when_there_is_room() {
    let sim = SimFs::new(2);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    fs.create_dir_all(Path::new(FOLDER)).unwrap();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    write(&mut log, &[&[1]]);
    // Creating, then allocating the next file; the removal of a leftover precedes.
    for operation in 1..3 {
        sim.fail_at(sim.operations() + operation, std::io::ErrorKind::StorageFull);
        let error = log.reserve(FILE_BYTES).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        write(&mut log, &[&[1]]);
    }
    write(&mut log, &[&[900]]);
    drop(log);
    let (_, seen) = open(&fs, Txn(0)).unwrap();
    assert_eq!(seen.iter().map(|s| s.1).collect::<Vec<_>>(), [1, 1, 1, 900]);
}

#[test]
fn what_frees_space_has_room_where_rows_have_none() {
    let sim = SimFs::new(2);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    fs.create_dir_all(Path::new(FOLDER)).unwrap();
    let found = replay(&*fs, Txn(0), |_, _| Ok(())).unwrap();
    let mut log = LogWriter::begin(fs.clone(), found, LEAST_FILE_BYTES).unwrap();
    write(&mut log, &[&[1]]);
    let (number, left) = (log.current.number, log.current.capacity - log.current.len);
    sim.fail_at(sim.operations() + 1, std::io::ErrorKind::StorageFull);
    assert_eq!(log.reserve(left).unwrap_err().kind(), ErrorKind::Unavailable);
    log.reserve_to_free(left).unwrap();
    assert_eq!(log.current.number, number, "no other file was made");
    let mut group = Group::default();
    group.push(log.txn.next(), &ops(1));
    log.append(&mut group).unwrap();
    log.sync().unwrap();
    // After the end no space is left for any commit.
    sim.fail_at(sim.operations() + 1, std::io::ErrorKind::StorageFull);
    assert!(log.reserve_to_free(left).is_err());
    drop(log);
    assert_eq!(open(&fs, Txn(0)).unwrap().1.len(), 2);
}

#[test]
fn after_a_failed_sync_nothing_is_taken_until_the_log_is_opened_again() {
    let sim = SimFs::new(3);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    fs.create_dir_all(Path::new(FOLDER)).unwrap();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    write(&mut log, &[&[1]]);
    let mut group = Group::default();
    group.push(log.txn.next(), &ops(1));
    log.append(&mut group).unwrap();
    sim.fail_at(sim.operations(), std::io::ErrorKind::Other);
    assert!(log.sync().is_err());
    let error = log.reserve(1).unwrap_err();
    assert!(error.to_string().contains("until the database is opened again"), "{error}");
    assert!(log.sync().is_err(), "a later sync must not pretend");
}

#[test]
fn a_spare_made_ahead_is_the_next_file() {
    let fs = disk();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    assert!(log.wants_spare());
    make_spare(&*fs, FILE_BYTES, true, |_| ()).unwrap();
    // A spare that was not added is made again.
    make_spare(&*fs, FILE_BYTES, true, |_| ()).unwrap();
    log.add_spare();
    assert!(!log.wants_spare());
    assert_eq!(files(&fs), ["0000000000000001", NEW_SPARE]);
    write(&mut log, &[&[600], &[600]]);
    assert_eq!(files(&fs), ["0000000000000001", "0000000000000002"]);
    assert!(log.wants_spare());
    make_spare(&*fs, FILE_BYTES, true, |_| ()).unwrap();
    let (_, seen) = open(&fs, Txn(0)).unwrap();
    assert_eq!(seen, [(Txn(1), 600), (Txn(2), 600)]);
    assert!(!files(&fs).contains(&NEW_SPARE.to_owned()), "an unused spare does not outlive the process");
}

/// Records of any length, in one group or in many, begin and end at any position of the blocks that are written past
/// the cache.
#[test]
fn files_written_past_the_cache_have_the_same_records() {
    let written = |bypass_cache: bool| {
        let fs = disk();
        let found = replay(&*fs, Txn(0), |_, _| Ok(())).unwrap();
        let mut log = LogWriter::begin(fs.clone(), found, 4 * FILE_BYTES).unwrap();
        log.bypass_cache(bypass_cache);
        let mut dice = fastrand::Rng::with_seed(11);
        let (mut expected, mut units) = (Vec::new(), Vec::new());
        let mut group = Group::default();
        for _ in 0..400 {
            if log.wants_spare() {
                make_spare(&*fs, 4 * FILE_BYTES, bypass_cache, |_| ()).unwrap();
                log.add_spare();
            }
            for _ in 0..dice.usize(1..4) {
                let below = 1 << dice.u32(1..9);
                let count = dice.usize(..below);
                expected.push((Txn(expected.len() as u64 + 1), count));
                group.push(Txn(expected.len() as u64), &ops(count));
            }
            log.reserve(group.byte_count() as u64).unwrap();
            log.append(&mut group).unwrap();
            assert!(group.is_empty() && group.byte_count() == 0);
            log.sync().unwrap();
            units.push(log.current.file.write_unit());
        }
        let bytes = log.byte_count();
        drop(log);
        assert_eq!(open(&fs, Txn(0)).unwrap().1, expected);
        (bytes, units)
    };
    let ((with, units), (without, others)) = (written(false), written(true));
    assert_eq!(with, without, "the records take the same room");
    assert!(units.iter().all(|unit| *unit == 1));
    assert!(
        others[0] == 1 && others.iter().filter(|unit| **unit == DIRECT_UNIT).count() > 300,
        "all but the first file"
    );
}

#[test]
fn what_an_opening_shows_outlives_a_power_loss_behind_a_failed_sync_and_a_file_that_could_not_be_begun() {
    let sim = SimFs::new(4);
    let fs: Arc<dyn Fs> = Arc::new(sim.clone());
    fs.create_dir_all(Path::new(FOLDER)).unwrap();
    fs.sync_dir(Path::new("")).unwrap();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    write(&mut log, &[&[1]]);
    // Removing a leftover, creating, allocating, syncing the folder, writing the header: then the sync fails.
    sim.fail_at(sim.operations() + 5, std::io::ErrorKind::Other);
    assert!(log.reserve(2 * FILE_BYTES).is_err());
    assert_eq!(files(&fs).len(), 2, "the file that was not begun is there");
    let mut group = Group::default();
    group.push(log.txn.next(), &ops(2));
    log.append(&mut group).unwrap();
    sim.fail_at(sim.operations(), std::io::ErrorKind::Other);
    assert!(log.sync().is_err());
    drop(log);
    let killed = sim.killed();
    let (_, shown) = open(&(Arc::new(killed.clone()) as Arc<dyn Fs>), Txn(0)).unwrap();
    assert_eq!(shown, [(Txn(1), 1), (Txn(2), 2)]);
    killed.crash();
    for seed in 0..20 {
        let survivor: Arc<dyn Fs> = Arc::new(killed.survivor(seed));
        assert_eq!(open(&survivor, Txn(0)).unwrap().1, shown, "survivor {seed}");
    }
}

/// Returns a log of one file with two commits, whose first record does not match its checksum.
fn first_record_is_bad(is_synced_between: bool) -> Arc<dyn Fs> {
    let fs = disk();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    write(&mut log, &[&[1], &[1], &[1]]);
    drop(log);
    let (mut log, _) = open(&fs, Txn(3)).unwrap();
    log.release(Txn(3));
    let groups: &[&[usize]] = if is_synced_between { &[&[1], &[1]] } else { &[&[1, 1]] };
    write(&mut log, groups);
    let path = log.current.path.clone();
    assert_eq!(files(&fs).iter().filter(|name| !name.starts_with("spare-")).count(), 1);
    let file = fs.open_write(&path).unwrap();
    file.write_all_at(&[0xff], FILE_HEADER + RECORD_HEADER as u64).unwrap();
    fs
}

#[test]
fn a_first_record_that_was_not_synced_before_the_next_may_be_torn() {
    let fs = first_record_is_bad(false);
    let (mut log, seen) = open(&fs, Txn(3)).unwrap();
    assert_eq!(seen, []);
    write(&mut log, &[&[7]]);
    drop(log);
    assert_eq!(open(&fs, Txn(3)).unwrap().1, [(Txn(4), 7)]);
}

#[test]
fn a_first_record_that_was_synced_before_the_next_must_be_whole() {
    let fs = first_record_is_bad(true);
    let error = open(&fs, Txn(3)).unwrap_err();
    assert!(error.to_string().contains("a synced commit does not match its checksum"), "{error}");
}

#[test]
fn the_first_record_of_all_must_be_whole_too_when_one_was_synced_behind_it() {
    let fs = disk();
    let (mut log, _) = open(&fs, Txn(0)).unwrap();
    write(&mut log, &[&[1], &[1]]);
    let file = fs.open_write(&log.current.path).unwrap();
    file.write_all_at(&[0xff], FILE_HEADER + RECORD_HEADER as u64).unwrap();
    let error = open(&fs, Txn(0)).unwrap_err();
    assert!(error.to_string().contains("a synced commit does not match its checksum"), "{error}");
}

/// A random history of a log with overlapping syncs: groups are written, syncs begin and end in any order, the power is
/// lost.
///
/// `synced` gets the number of commits known to be durable whenever a sync and all previous ones have ended.
struct Overlapping {
    log: LogWriter,
    /// Syncs that have not ended or follow such syncs: the content, its commits, and true if the sync has ended.
    flying: VecDeque<(Unsynced, Txn, bool)>,
    chance: u64,
    synced: Txn,
}

impl Overlapping {
    fn chance(&mut self, of: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % of
    }

    fn step(&mut self) -> Result<()> {
        if self.flying.len() < 4 && self.chance(2) == 0 {
            if self.log.wants_spare() {
                make_spare(&*self.log.fs, self.log.file_bytes, self.log.bypasses_cache, |_| ())?;
                self.log.add_spare();
            }
            let mut group = Group::default();
            for _ in 0..=self.chance(2) {
                let txn = Txn(self.log.txn.0 + 1 + group.records.len() as u64);
                group.push(txn, &ops(1 + self.chance(20) as usize));
            }
            if !self.log.has_room(group.byte_count() as u64) {
                while !self.flying.is_empty() {
                    self.end(0)?;
                }
            }
            self.log.reserve(group.byte_count() as u64)?;
            self.log.append(&mut group)?;
            self.flying.push_back((self.log.unsynced(), self.log.txn, false));
        } else if !self.flying.is_empty() {
            let which = self.chance(self.flying.len() as u64) as usize;
            self.end(which)?;
        }
        Ok(())
    }

    fn end(&mut self, which: usize) -> Result<()> {
        if !self.flying[which].2 {
            self.flying[which].0.sync()?;
            self.flying[which].2 = true;
        }
        while let Some((unsynced, txn, _)) = self.flying.pop_front_if(|f| f.2) {
            self.log.note_synced(&unsynced);
            self.synced = txn;
        }
        Ok(())
    }
}

#[test]
fn where_syncs_overlap_a_power_loss_leaves_what_was_synced_and_nothing_is_taken_for_damage() {
    let mut lengths = Vec::new();
    for seed in 0..400 {
        let sim = SimFs::new(seed);
        let fs: Arc<dyn Fs> = Arc::new(sim.clone());
        fs.create_dir_all(Path::new(FOLDER)).unwrap();
        fs.sync_dir(Path::new("")).unwrap();
        let found = replay(&*fs, Txn(0), |_, _| Ok(())).unwrap();
        let mut log = LogWriter::begin(fs.clone(), found, 3 * FILE_BYTES).unwrap();
        log.bypass_cache(seed % 4 > 0);
        let mut run = Overlapping { log, flying: VecDeque::new(), chance: seed, synced: Txn(0) };
        sim.crash_at(sim.operations() + 1 + seed % 200);
        while run.step().is_ok() {}
        let (synced, written) = (run.synced, run.log.txn.0 + 2);
        for survivor in 0..4 {
            let survivor: Arc<dyn Fs> = Arc::new(sim.survivor(survivor));
            let (_, seen) = open(&survivor, Txn(0)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let found = seen.len() as u64;
            assert!((synced.0..=written).contains(&found), "seed {seed}: {found} of {synced} to {written}");
            assert!(seen.iter().map(|s| s.0.0).eq(1..=found), "seed {seed}");
            let again = open(&survivor, Txn(0)).unwrap_or_else(|error| panic!("seed {seed}, again: {error}")).1;
            assert_eq!(again, seen, "seed {seed}");
            lengths.push(found - synced.0);
        }
    }
    assert!(lengths.contains(&0) && lengths.iter().any(|&more| more > 1), "some of what was not synced survives");
}

#[test]
fn where_syncs_overlap_damage_to_what_was_long_synced_is_corruption() {
    let fs = disk();
    let log = open(&fs, Txn(0)).unwrap().0;
    let mut run = Overlapping { log, flying: VecDeque::new(), chance: 1, synced: Txn(0) };
    // A sync always begins before the previous one has ended.
    for round in 0..12 {
        let mut group = Group::default();
        group.push(run.log.txn.next(), &ops(1));
        run.log.append(&mut group).unwrap();
        run.flying.push_back((run.log.unsynced(), run.log.txn, false));
        if round > 0 {
            run.end(0).unwrap();
        }
    }
    let path = run.log.current.path.clone();
    let size = (run.log.current.len - FILE_HEADER) / 12;
    drop(run);
    for (damaged, is_corrupt) in [(0, true), (4, true), (10, false), (11, false)] {
        let file = fs.open_write(&path).unwrap();
        let at = FILE_HEADER + damaged * size + RECORD_HEADER as u64;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
        let mut seen = 0;
        let found = replay(&*fs, Txn(0), |_, _| {
            seen += 1;
            Ok(())
        });
        match found {
            Ok(_) => assert!(!is_corrupt && seen == damaged, "commit {damaged}: {seen}"),
            Err(error) => assert!(is_corrupt && error.kind() == ErrorKind::Corrupt, "commit {damaged}: {error}"),
        }
        file.write_all_at(&byte, at).unwrap();
    }
}
