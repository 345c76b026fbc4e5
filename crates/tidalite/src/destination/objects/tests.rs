//! Tests with a store in memory; `tests/clients` tests a real S3 API.

use super::*;
use object_store::memory::InMemory;

fn objects() -> (Arc<InMemory>, Objects) {
    let store = Arc::new(InMemory::new());
    let objects = Objects::new(store.clone(), Path::from("a/b"), "s3://bucket/a/b".to_owned()).unwrap();
    (store, objects)
}

fn byte(at: usize) -> u8 {
    (at * 7 % 251) as u8
}

fn put(objects: &Objects, name: &str, len: u64, fail_at: usize) -> Result<()> {
    let mut at = 0;
    objects.put(name, len, &mut |buffer| {
        buffer.iter_mut().enumerate().for_each(|(i, b)| *b = byte(at + i));
        at += buffer.len();
        if at > fail_at { Err(Error::new(ErrorKind::Unavailable, "enough")) } else { Ok(()) }
    })
}

#[test]
fn objects_come_back_whole_whatever_their_size() {
    let (_, objects) = objects();
    for len in [0, 1, PART_BYTES, PART_BYTES + 1, 5 * PART_BYTES + 77] {
        let name = format!("segments/{len}");
        put(&objects, &name, len, usize::MAX).unwrap();
        let file = objects.open(&name).unwrap();
        assert_eq!(file.len().unwrap(), len);
        let (mut at, mut piece) = (0, vec![0; 3_000_001]);
        while at < len {
            let count = (len - at).min(piece.len() as u64) as usize;
            file.read_exact_at(&mut piece[..count], at).unwrap();
            assert!(piece[..count].iter().enumerate().all(|(i, b)| *b == byte(at as usize + i)), "{name} at {at}");
            at += count as u64;
        }
        assert!(file.read_exact_at(&mut [0], len).is_err());
    }
    let (first, second) = ((5 * PART_BYTES + 77).to_string(), PART_BYTES.to_string());
    let names = objects.list("segments").unwrap();
    assert!(names.len() == 5 && names.contains(&first) && names.contains(&second), "{names:?}");
    assert_eq!(objects.list("").unwrap(), ["segments"]);
    assert!(objects.list("nowhere").unwrap().is_empty());
}

#[test]
fn what_is_called_off_is_not_there() {
    let (_, objects) = objects();
    for fail_at in [0, 9 << 20, 30 << 20] {
        let refused = put(&objects, "segments/x", 5 * PART_BYTES, fail_at).unwrap_err();
        assert_eq!(refused.message, "enough");
        assert_eq!(objects.open("segments/x").unwrap_err().kind, ErrorKind::NotFound);
    }
}

#[test]
fn a_new_name_is_put_once() {
    let (store, objects) = objects();
    objects.put_new("backups/x", b"one").unwrap();
    // The same write again simulates a lost response.
    objects.put_new("backups/x", b"one").unwrap();
    let refused = objects.put_new("backups/x", b"two").unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert_eq!(refused.message, "s3://bucket/a/b/backups/x is there already, and another one");
    assert_eq!(objects.read("backups/x").unwrap(), b"one");
    let at = Path::from("a/b/backups/x");
    assert!(objects.wait(store.head(&at), &mut || Ok(())).unwrap().is_ok());
}

#[test]
fn errors_name_bucket_and_key() {
    let (_, objects) = objects();
    let missing = objects.read("backups/none").unwrap_err();
    assert!(missing.message.starts_with("could not read s3://bucket/a/b/backups/none: "), "{missing}");
    assert_eq!(super::super::open("s3://", true).unwrap_err().message, "s3:// names no bucket");
    let unknown = super::super::open("ftp://host/x", true).unwrap_err();
    assert!(unknown.message.starts_with("ftp:// is no destination"), "{unknown}");
}

#[test]
fn who_waits_may_stop_waiting() {
    let (_, objects) = objects();
    let mut asked = 0;
    let stopped = objects.wait(std::future::pending::<()>(), &mut || {
        asked += 1;
        if asked == 2 { Err(Error::new(ErrorKind::Unavailable, "canceled")) } else { Ok(()) }
    });
    assert_eq!((stopped.unwrap_err().message.as_str(), asked), ("canceled", 2));
}
