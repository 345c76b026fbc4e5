//! The beginnings of lines, table and all tags, that were seen before.
//!
//! A source repeats its tags in every line. The text from the start of a line to the space before its fields is a
//! series; knowing it, one comparison replaces reading every tag. Sources usually report in turn, so the series that
//! followed the present one last time is tried first, then the text is looked up by hash.
//!
//! A series points at entries of its columns' symbol tables, which outlive batches as it does.

use super::scan::hash;
use super::table::StepId;

#[derive(Debug)]
struct Series {
    hash: u64,
    /// Its text in `keys`, ending with the space.
    key_at: usize,
    key_bytes: usize,
    /// Its tags in `tags`.
    tags_at: usize,
    tag_count: usize,
    table: u32,
    last_step: StepId,
    next: u32,
}

/// What the beginning of a line stands for.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub table: u32,
    pub last_step: StepId,
    /// Length of the text before the space.
    pub text_bytes: usize,
    tags_at: usize,
    tag_count: usize,
}

#[derive(Debug)]
pub(super) struct SeriesCache {
    keys: Vec<u8>,
    series: Vec<Series>,
    /// Column and entry in its symbol table.
    tags: Vec<(u32, u32)>,
    /// Number of a series plus one by hash, 0 is free; at most half full.
    slots: Vec<u32>,
    last: u32,
    bytes_max: usize,
    /// Lines and hits since the last judgement.
    lines: u32,
    hits: u32,
    /// Lines still to go by unlooked at, and how many it will be after the next bad judgement.
    pause: u32,
    pause_next: u32,
}

/// Lines between two judgements whether looking pays.
const WINDOW: u32 = 4096;
const PAUSE_MAX: u32 = 16 * WINDOW;
/// Longer beginnings are not looked up.
const KEY_BYTES_MAX: usize = 4096;

impl SeriesCache {
    /// Looks at no lines before `pause` went by.
    pub(super) fn new(bytes_max: usize, pause: u32) -> SeriesCache {
        SeriesCache {
            keys: Vec::new(),
            series: Vec::new(),
            tags: Vec::new(),
            slots: vec![0; 64],
            last: 0,
            bytes_max,
            lines: 0,
            hits: 0,
            pause,
            pause_next: WINDOW,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = SeriesCache::new(self.bytes_max, self.pause);
    }

    /// Whether lines are looked at now; if so [`SeriesCache::find`] follows. Where few lines are known, as with
    /// series that come only once, it pauses for longer and longer.
    #[inline(always)]
    pub(super) fn looks(&mut self) -> bool {
        if self.pause > 0 {
            self.pause -= 1;
            return false;
        }
        self.lines += 1;
        if self.lines >= WINDOW {
            self.judge();
        }
        true
    }

    #[cold]
    fn judge(&mut self) {
        if self.hits < self.lines / 4 {
            self.pause = self.pause_next;
            self.pause_next = (2 * self.pause_next).min(PAUSE_MAX);
        } else {
            self.pause_next = WINDOW;
        }
        (self.lines, self.hits) = (0, 0);
    }

    #[inline(always)]
    pub(super) fn find(&mut self, input: &[u8], start: usize, seed: u64) -> Option<Known> {
        let guess = self.series.get(self.last as usize)?.next;
        let found = match self.series.get(guess as usize) {
            Some(series) if input[start..].starts_with(self.key(series)) => guess,
            _ => self.look_up(input, start, seed)?,
        };
        self.hits += 1;
        self.last = found;
        let series = &self.series[found as usize];
        Some(Known {
            table: series.table,
            last_step: series.last_step,
            text_bytes: series.key_bytes - 1,
            tags_at: series.tags_at,
            tag_count: series.tag_count,
        })
    }

    #[inline(always)]
    fn key(&self, series: &Series) -> &[u8] {
        &self.keys[series.key_at..series.key_at + series.key_bytes]
    }

    fn look_up(&mut self, input: &[u8], start: usize, seed: u64) -> Option<u32> {
        let rest = &input[start..input.len().min(start + KEY_BYTES_MAX)];
        let key = &rest[..=memchr::memchr(b' ', rest)?];
        let hash = hash(key, seed);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let found = self.slots[at].checked_sub(1)?;
            let series = &self.series[found as usize];
            if series.hash == hash && self.key(series) == key {
                self.series[self.last as usize].next = found;
                return Some(found);
            }
            at = (at + 1) & mask;
        }
    }

    /// The tags of a series: column and entry in its symbol table.
    #[inline(always)]
    pub(super) fn tags(&self, known: Known) -> &[(u32, u32)] {
        &self.tags[known.tags_at..known.tags_at + known.tag_count]
    }

    /// Whether a series with so long a text can be learnt.
    pub(super) fn has_room(&self, key_bytes: usize) -> bool {
        let used = self.keys.len() + self.series.len() * (size_of::<Series>() + 16) + self.tags.len() * 8;
        key_bytes <= KEY_BYTES_MAX && used + key_bytes < self.bytes_max
    }

    /// Learns a series that [`SeriesCache::find`] did not know. `key` ends with the space.
    pub(super) fn learn(
        &mut self,
        key: &[u8],
        seed: u64,
        table: u32,
        last_step: StepId,
        tags: impl Iterator<Item = (u32, u32)>,
    ) {
        let (hash, tags_at, id) = (hash(key, seed), self.tags.len(), self.series.len() as u32);
        self.tags.extend(tags);
        self.series.push(Series {
            hash,
            key_at: self.keys.len(),
            key_bytes: key.len(),
            tags_at,
            tag_count: self.tags.len() - tags_at,
            table,
            last_step,
            next: u32::MAX,
        });
        self.keys.extend_from_slice(key);
        self.series[self.last as usize].next = id;
        self.last = id;
        if self.slots.len() < 2 * self.series.len() {
            self.slots = vec![0; 2 * self.slots.len()];
            for id in 0..self.series.len() {
                self.occupy(id as u32);
            }
        } else {
            self.occupy(id);
        }
    }

    fn occupy(&mut self, id: u32) {
        let mask = self.slots.len() - 1;
        let mut at = self.series[id as usize].hash as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = id + 1;
    }
}
