//! The bytes of one simulated file: as returned by reads, as stored on the disk, and the unsynced versions.
//!
//! Sparse, because logs reserve far more than tests write.

use super::rng::Rng;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const SECTOR: usize = 512;
/// Shared between the states of a file and of the disks that survive it.
type Sector = Arc<[u8; SECTOR]>;

/// Missing sectors are zeros. Bytes past the length are zeros, so that growing shows zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    len: u64,
    sectors: BTreeMap<u64, Sector>,
    durable_len: u64,
    durable: BTreeMap<u64, Sector>,
    /// Every content of a sector since the last sync, oldest first.
    unsynced: BTreeMap<u64, Vec<Sector>>,
    /// Every length since the last sync.
    unsynced_lens: Vec<u64>,
}

/// Largest number of contents of a repeatedly written sector; the oldest and the newest ones are kept.
const VERSIONS_MAX: usize = 8;

impl Content {
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (sector, within, range) in sectors(offset, buffer.len()) {
            let part = &mut buffer[range.clone()];
            match self.sectors.get(&sector) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + range.len()]),
                None => part.fill(0),
            }
        }
        Ok(())
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        for (sector, within, range) in sectors(offset, bytes.len()) {
            let mut content = self.sectors.get(&sector).map_or([0; SECTOR], |old| **old);
            content[within..within + range.len()].copy_from_slice(&bytes[range]);
            let content = Arc::new(content);
            self.sectors.insert(sector, content.clone());
            self.remember(sector, content);
        }
        if !bytes.is_empty() && offset + bytes.len() as u64 > self.len {
            self.change_len(offset + bytes.len() as u64);
        }
    }

    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.clear_from(len);
        }
        if len != self.len {
            self.change_len(len);
        }
    }

    fn change_len(&mut self, len: u64) {
        self.len = len;
        self.unsynced_lens.push(len);
    }

    /// Zeroes the bytes past `len`.
    fn clear_from(&mut self, len: u64) {
        let first = len / SECTOR as u64;
        let touched: Vec<u64> = self.sectors.range(first..).map(|(sector, _)| *sector).collect();
        for sector in touched {
            let keep = if sector == first { (len % SECTOR as u64) as usize } else { 0 };
            let mut content = *self.sectors[&sector];
            content[keep..].fill(0);
            let content = Arc::new(content);
            if keep > 0 {
                self.sectors.insert(sector, content.clone());
            } else {
                self.sectors.remove(&sector);
            }
            self.remember(sector, content);
        }
    }

    fn remember(&mut self, sector: u64, content: Sector) {
        let versions = self.unsynced.entry(sector).or_default();
        if versions.len() == VERSIONS_MAX {
            versions.remove(VERSIONS_MAX / 2);
        }
        versions.push(content);
    }

    pub fn sync(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.unsynced) {
            let newest = &versions[versions.len() - 1];
            put(&mut self.durable, sector, newest);
        }
        self.unsynced_lens.clear();
        self.durable_len = self.len;
    }

    /// Makes some of the content durable and forgets the rest, although reads still return it.
    pub fn fail_sync(&mut self, rng: &mut Rng) {
        (self.durable, self.durable_len) = self.settle(rng);
        self.unsynced.clear();
        self.unsynced_lens.clear();
    }

    /// Returns a possible content of the disk after a power loss.
    pub fn survivor(&self, rng: &mut Rng) -> Content {
        let (durable, len) = self.settle(rng);
        Content { len, sectors: durable.clone(), durable_len: len, durable, ..Content::default() }
    }

    fn settle(&self, rng: &mut Rng) -> (BTreeMap<u64, Sector>, u64) {
        let mut durable = self.durable.clone();
        // The share of lost sectors is chosen first; otherwise large writes would never survive or vanish completely.
        let lost_of_8 = [0, 1, 4, 7, 8][rng.below(5)];
        for (sector, versions) in &self.unsynced {
            if rng.below(8) >= lost_of_8 {
                let newest = versions.len() - 1;
                let chosen = if rng.below(4) == 0 { rng.below(versions.len()) } else { newest };
                put(&mut durable, *sector, &versions[chosen]);
            }
        }
        let lens = self.unsynced_lens.len();
        let len = match rng.below(4) {
            0 => self.durable_len,
            1 if lens > 0 => self.unsynced_lens[rng.below(lens)],
            _ => self.unsynced_lens.last().copied().unwrap_or(self.durable_len),
        };
        let mut content = Content { len, sectors: durable, ..Content::default() };
        content.clear_from(len);
        (content.sectors, len)
    }
}

fn put(sectors: &mut BTreeMap<u64, Sector>, sector: u64, content: &Sector) {
    if **content == [0; SECTOR] {
        sectors.remove(&sector);
    } else {
        sectors.insert(sector, content.clone());
    }
}

/// Returns the sectors of `len` bytes at `offset`: number, first byte within the sector, and the range of the bytes.
fn sectors(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % SECTOR as u64) as usize;
        let take = (SECTOR - within).min(len - done);
        let range = done..done + take;
        done += take;
        (take > 0).then_some((at / SECTOR as u64, within, range))
    })
}
