use super::*;
use std::collections::HashSet;

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn read(fs: &SimFs, name: &str) -> io::Result<Vec<u8>> {
    let file = fs.open(path(name))?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Returns a disk with a synced file `a` of `len` ones.
fn disk_with_ones(len: usize) -> (SimFs, Arc<dyn File>) {
    let fs = SimFs::new(1);
    let file = fs.create(path("a")).unwrap();
    file.write_all_at(&vec![1; len], 0).unwrap();
    file.sync().unwrap();
    fs.sync_dir(path("")).unwrap();
    (fs, file)
}

#[test]
fn it_behaves_as_the_operating_system() {
    let dir = tempfile::tempdir().unwrap();
    let os = crate::fs::os::OsFs::new(dir.path());
    let sim = SimFs::new(0);
    let mut rng = fastrand::Rng::with_seed(1);
    let names = ["a", "b", "d/a", "d/b", "d/e/a", "x/y"];
    for _ in 0..5_000 {
        let (one, two) = (path(names[rng.usize(..6)]), path(names[rng.usize(..6)]));
        let (offset, len, kind) = (rng.u64(..3_000), rng.usize(..2_000), rng.u8(..12));
        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        let run = |fs: &dyn Fs| -> io::Result<Vec<u8>> {
            let nothing = |()| Vec::new();
            match kind {
                0 => fs.create(one).map(|_| Vec::new()),
                1 => fs.rename(one, two).map(nothing),
                2 if offset < 1_000 => fs.remove(one).map(nothing),
                3 => fs.create_dir_all(path(["d", "d/e"][len % 2])).map(nothing),
                4 => fs.list(path(["", "d", "none"][len % 3])).map(|names| names.join(",").into_bytes()),
                5 => fs.open_write(one)?.set_len(offset).map(nothing),
                6 => fs.open_write(one)?.allocate(offset).map(nothing),
                7 => fs.open(one)?.len().map(|len| len.to_le_bytes().to_vec()),
                8 | 9 => {
                    let mut buffer = vec![9; len];
                    fs.open(one)?.read_exact_at(&mut buffer, offset).map(|()| buffer)
                }
                _ => fs.open_write(one)?.write_all_at(&bytes, offset).map(nothing),
            }
        };
        let (a, b) = (run(&os), run(&sim));
        assert_eq!(a.as_ref().map_err(io::Error::kind), b.as_ref().map_err(io::Error::kind), "{kind} {one:?} {two:?}");
    }
}

#[test]
fn what_is_synced_survives_and_the_rest_may_in_any_part() {
    let (fs, file) = disk_with_ones(2048);
    file.write_all_at(&[2; 1024], 512).unwrap();
    file.write_all_at(&[3; 600], 2048).unwrap();
    let mut seen = HashSet::new();
    for seed in 0..2_000 {
        let bytes = read(&fs.survivor(seed), "a").unwrap();
        assert!([2048, 2648].contains(&bytes.len()), "{}", bytes.len());
        assert!(bytes[..512].iter().chain(&bytes[1536..2048]).all(|b| *b == 1), "synced and not written since");
        let is_whole = |sector: &[u8]| sector.iter().all(|b| *b == sector[0]);
        assert!(bytes.chunks(512).all(is_whole), "sectors are old or new");
        let sector = |at: usize| bytes.get(at).copied();
        assert!([Some(1), Some(2)].contains(&sector(512)) && [None, Some(0), Some(3)].contains(&sector(2048)));
        seen.insert((sector(512), sector(1024), sector(2048), sector(2560)));
    }
    assert_eq!(seen.len(), 4 + 16, "every way is found");
    file.sync().unwrap();
    let expected = read(&fs, "a").unwrap();
    assert!((0..50).all(|seed| read(&fs.survivor(seed), "a").unwrap() == expected));
}

#[test]
fn a_sector_written_twice_may_have_either_content() {
    let (fs, file) = disk_with_ones(512);
    file.write_all_at(&[2; 512], 0).unwrap();
    file.write_all_at(&[3; 512], 0).unwrap();
    let seen: HashSet<u8> = (0..500).map(|seed| read(&fs.survivor(seed), "a").unwrap()[0]).collect();
    assert_eq!(seen, HashSet::from([1, 2, 3]));
}

#[test]
fn a_file_cut_and_grown_has_zeros_where_it_was_cut() {
    let (fs, file) = disk_with_ones(1000);
    file.set_len(100).unwrap();
    file.set_len(1000).unwrap();
    let expected: Vec<u8> = (0..1000).map(|at| u8::from(at < 100)).collect();
    assert_eq!(read(&fs, "a").unwrap(), expected);
    file.sync().unwrap();
    assert_eq!(read(&fs.survivor(1), "a").unwrap(), expected);
}

#[test]
fn names_are_lost_until_their_folder_is_synced() {
    let (fs, _) = disk_with_ones(10);
    fs.create_dir_all(path("d/e")).unwrap();
    let file = fs.create(path("d/e/f")).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    file.sync().unwrap();
    fs.sync_dir(path("d/e")).unwrap();
    let survives = |fs: &SimFs| (0..200).filter(|seed| read(&fs.survivor(*seed), "d/e/f").is_ok()).count();
    assert!((1..200).contains(&survives(&fs)), "its folder may be lost");
    fs.sync_dir(path("d")).unwrap();
    assert!((1..200).contains(&survives(&fs)), "and the folder of that");
    fs.sync_dir(path("")).unwrap();
    assert_eq!(survives(&fs), 200);
}

#[test]
fn a_rename_within_a_folder_leaves_one_of_both() {
    let (fs, _) = disk_with_ones(10);
    let file = fs.create(path("b")).unwrap();
    file.write_all_at(&[2; 10], 0).unwrap();
    file.sync().unwrap();
    fs.sync_dir(path("")).unwrap();
    fs.rename(path("b"), path("a")).unwrap();
    let mut seen = HashSet::new();
    for seed in 0..200 {
        let survivor = fs.survivor(seed);
        let content = read(&survivor, "a").unwrap()[0];
        assert_eq!(survivor.open(path("b")).is_ok(), content == 1);
        seen.insert(content);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_failed_sync_loses_what_a_later_one_does_not_save() {
    let mut lost = 0;
    for seed in 0..100 {
        let fs = SimFs::new(seed);
        let file = fs.create(path("a")).unwrap();
        fs.sync_dir(path("")).unwrap();
        file.write_all_at(&[7; 5_000], 0).unwrap();
        fs.fail_at(fs.operations(), io::ErrorKind::Other);
        assert!(file.sync().is_err());
        assert_eq!(read(&fs, "a").unwrap(), [7; 5_000], "reads still show it");
        file.sync().unwrap();
        lost += u32::from(read(&fs.survivor(seed), "a").unwrap() != [7; 5_000]);
    }
    assert!((30..100).contains(&lost), "{lost}");
}

#[test]
fn a_full_disk_refuses_one_operation_and_may_have_done_a_part() {
    let (fs, file) = disk_with_ones(100);
    fs.fail_at(fs.operations() + 1, io::ErrorKind::StorageFull);
    file.write_all_at(&[2; 100], 0).unwrap();
    let error = file.write_all_at(&[3; 100], 100).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(file.len().unwrap() <= 200);
    file.write_all_at(&[3; 100], 100).unwrap();
    assert_eq!(file.len().unwrap(), 200);
    assert_eq!(fs.history().last().unwrap(), &Operation { what: "write", path: "a".into() });
}

#[test]
fn after_the_power_went_nothing_works_until_the_survivor() {
    let (fs, file) = disk_with_ones(100);
    fs.crash_at(fs.operations());
    assert!(!fs.is_crashed());
    assert!(file.write_all_at(&[2; 100], 0).is_err());
    assert!(fs.is_crashed());
    let mut buffer = [0; 1];
    assert!(file.read_exact_at(&mut buffer, 0).is_err() && file.len().is_err() && file.sync().is_err());
    assert!(fs.open(path("a")).is_err() && fs.list(path("")).is_err() && fs.create(path("b")).is_err());
    let survivor = fs.survivor(1);
    assert_eq!(survivor.operations(), 0);
    assert_eq!(read(&survivor, "a").unwrap().len(), 100);
    survivor.create(path("b")).unwrap();
}

#[test]
fn the_operation_of_the_crash_may_have_happened() {
    let outcomes: HashSet<bool> = (0..50)
        .map(|seed| {
            let fs = SimFs::new(seed);
            let file = fs.create(path("a")).unwrap();
            fs.sync_dir(path("")).unwrap();
            file.write_all_at(&[1; 10_000], 0).unwrap();
            fs.crash_at(3);
            assert!(file.sync().is_err());
            (0..20).all(|seed| read(&fs.survivor(seed), "a").unwrap() == [1; 10_000])
        })
        .collect();
    assert_eq!(outcomes.len(), 2);
}

#[test]
fn the_same_seeds_give_the_same_disk() {
    let run = |seed| {
        let (fs, file) = disk_with_ones(5_000);
        file.write_all_at(&[2; 3_000], 700).unwrap();
        fs.rename(path("a"), path("b")).unwrap();
        let survivor = fs.survivor(seed);
        (survivor.list(path("")).unwrap(), read(&survivor, "a").ok(), read(&survivor, "b").ok())
    };
    assert!((0..50).all(|seed| run(seed) == run(seed)));
}
