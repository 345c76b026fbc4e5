//! Whether a destination still has what its backups consist of: every file, as long as it was, with the same checksum.
//!
//! In: a destination. Out: what is missing or damaged, by name. Nothing is changed.

use super::list::{Item, backups};
use crate::Result;
use crate::check::GoOn;
use crate::destination::{Destination, PIECE_BYTES};
use std::collections::BTreeMap;
use std::path::Path;
use tidalite_storage::Error;

/// What [`verify_backups`] found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Backups in the destination.
    pub backups: u64,
    /// Files that they consist of, each counted once.
    pub files: u64,
    /// Bytes that were read and compared.
    pub bytes: u64,
    /// What is wrong, a line for each file, with the first backup that needs it.
    pub problems: Vec<String>,
}

/// Reads every file that a backup in the destination needs.
///
/// # Errors
/// When the destination cannot be read, or a list of a backup is damaged.
pub fn verify_backups(at: &dyn Destination, go_on: GoOn<'_>) -> Result<VerifyReport> {
    let all = backups(at)?;
    let mut needed: BTreeMap<&str, (&Item, &str)> = BTreeMap::new();
    for list in &all {
        for item in &list.items {
            needed.entry(&item.file).or_insert((item, &list.name));
        }
    }
    let total = needed.values().map(|(item, _)| item.bytes).sum();
    let mut report = VerifyReport { backups: all.len() as u64, files: needed.len() as u64, ..VerifyReport::default() };
    for (item, backup) in needed.values() {
        let done = report.bytes;
        match problem_of(at, item, &mut |bytes| go_on(done + bytes, total))? {
            None => report.bytes += item.bytes,
            Some(problem) => report.problems.push(format!("{} {problem}; backup {backup} needs it", item.file)),
        }
    }
    Ok(report)
}

/// What is wrong with a file of a backup. `go_on` is told how many bytes of it were read.
pub(super) fn problem_of(
    at: &dyn Destination,
    item: &Item,
    go_on: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Option<String>> {
    let io = |e| Error::io("read", Path::new(&item.file), e);
    if let Some(problem) = problem_of_length(at, item)? {
        return Ok(Some(problem));
    }
    let file = at.open(&item.file)?;
    let (mut crc, mut done, mut buffer) = (0, 0, vec![0; PIECE_BYTES.min(item.bytes as usize)]);
    while done < item.bytes {
        let piece = (item.bytes - done).min(PIECE_BYTES as u64) as usize;
        file.read_exact_at(&mut buffer[..piece], done).map_err(io)?;
        crc = crc32c::crc32c_append(crc, &buffer[..piece]);
        done += piece as u64;
        go_on(done)?;
    }
    Ok((crc != item.crc).then(|| "does not match its checksum".to_owned()))
}

/// What is wrong with a file of a backup without reading it: it is missing, or of another length.
pub(super) fn problem_of_length(at: &dyn Destination, item: &Item) -> Result<Option<String>> {
    let Some(file) = at.find(&item.file)? else { return Ok(Some("is missing".to_owned())) };
    let len = file.len().map_err(|e| Error::io("read", Path::new(&item.file), e))?;
    Ok((len != item.bytes).then(|| format!("has {len} bytes instead of {}", item.bytes)))
}
