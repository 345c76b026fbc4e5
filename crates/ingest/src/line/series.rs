//! The beginnings of lines, table and all tags, that were seen before.
//!
//! A source repeats its tags in every line. The text from the start of a line to the space before its fields is a
//! series; knowing it, one comparison replaces reading every tag. Sources usually report in turn, so the series that
//! followed the present one last time is tried first, then the text is looked up by the hash of its first bytes: as few
//! as tell series apart, since the text is compared anyway. Where sources report in no
//! order, memory is asked for the series that a line may be of, by its hash alone, and fetches it while the fields are read
//! that seem to follow; the text is compared after that.
//!
//! A series points at entries of its columns' symbol tables, which outlive batches as it does, and keeps the ids
//! that they have in the present dictionaries.

use super::scan::{FIRST_BYTES, hash, hash_of_first};
use super::table::StepId;
use tidalite_kernels::{position_in_64, prefetch_slice};

/// A series is a record of words: these, the ids of its tags, its text that ends with the space, and what fills it up to a
/// whole line of memory. Together, since where sources report in no order each line of memory is one to wait for. The
/// entries of its tags, which are seldom read, lie elsewhere.
mod word {
    pub const KEY_BYTES: usize = 0;
    pub const KIND: usize = 1;
    /// The series that followed last time, as its place plus one; 0 is none.
    pub const NEXT: usize = 2;
    /// The dictionaries that the ids of its tags are of, as [`super::SeriesCache::stamp`].
    pub const STAMP: usize = 3;
    /// Where in the list of all entries those of its tags begin.
    pub const ENTRIES: usize = 4;
    pub const IDS: usize = 5;
    /// Of a line of memory.
    pub const LINE: usize = 16;
}

/// What series have in common that have the same tags in the same order.
#[derive(Debug, PartialEq)]
struct Kind {
    table: u32,
    last_step: StepId,
    /// Of its tags.
    columns: Box<[u32]>,
}

/// Where a series is, by hash. At most half of the slots are taken.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Line of memory of its record, plus one; 0 is free.
    place: u32,
    /// The upper half of its hash.
    hash: u32,
}

/// The tags of a series, one after the other.
pub(super) struct SeriesTags<'a> {
    pub columns: &'a [u32],
    /// In the symbol tables of the columns.
    pub entries: &'a [u32],
    /// Of these entries in the dictionaries that the series is stamped with.
    pub ids: &'a mut [u32],
}

/// What the beginning of a line stands for.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub table: u32,
    pub last_step: StepId,
    /// Length of the text before the space.
    pub text_bytes: usize,
    /// Whether the ids of its tags are those of the present dictionaries.
    pub resolved: bool,
    /// What it has in common with others of its table.
    pub kind: u32,
    record: usize,
}

#[derive(Debug)]
pub(super) struct SeriesCache {
    records: Vec<u32>,
    /// Of the tags of all series, in the symbol tables of their columns.
    entries: Vec<u32>,
    count: usize,
    kinds: Vec<Kind>,
    slots: Vec<Slot>,
    /// The place of the series found last; 0 before the first.
    last: u32,
    /// Changes whenever ids given before stop being valid.
    stamp: u32,
    /// How often the series that followed last time did so again: above zero, it is tried first.
    order: i32,
    /// The hash of the line that [`SeriesCache::expect`] saw last.
    expected: Option<u64>,
    /// The shortest text that was learnt, without its space.
    text_bytes_min: usize,
    bytes_max: usize,
    /// So much of a beginning is hashed, or up to its first space.
    hashed_bytes: usize,
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
/// What of a beginning is hashed at first.
const HASHED_BYTES: usize = FIRST_BYTES;
/// Words of a record that are asked for: about all that most have.
const AHEAD_WORDS: usize = 4 * word::LINE;
/// Where more series than these have one hash, more is hashed.
const ALIKE_MAX: usize = 4;
/// Kinds that a new series is compared with: where there are more at a time, each has its own.
const KINDS_LOOKED_AT: usize = 16;
/// So many lines in another order than before, and the order is no longer trusted.
const ORDER_MAX: i32 = 8;

impl SeriesCache {
    /// Looks at no lines before `pause` went by.
    pub(super) fn new(bytes_max: usize, pause: u32) -> SeriesCache {
        SeriesCache {
            records: Vec::new(),
            entries: Vec::new(),
            count: 0,
            kinds: Vec::new(),
            slots: vec![Slot::default(); 64],
            last: 0,
            stamp: 1,
            order: ORDER_MAX,
            expected: None,
            text_bytes_min: KEY_BYTES_MAX,
            bytes_max: bytes_max.min(u32::MAX as usize),
            hashed_bytes: HASHED_BYTES,
            lines: 0,
            hits: 0,
            pause,
            pause_next: WINDOW,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = SeriesCache::new(self.bytes_max, self.pause);
    }

    /// The ids of the tags are void: other dictionaries began, or a row was undone.
    pub(super) fn void_ids(&mut self) {
        match self.stamp.checked_add(1) {
            Some(stamp) => self.stamp = stamp,
            None => self.clear(),
        }
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

    /// Where series come in no order: where the fields of the line at `start` seem to begin, after memory was asked for the
    /// series that it may be of. [`SeriesCache::find`] follows and decides.
    #[inline(always)]
    pub(super) fn expect(&mut self, input: &[u8], start: usize, seed: u64) -> Option<usize> {
        self.expected = None;
        if self.order > 0 {
            return None;
        }
        let hash = hashed(&input[start..], self.hashed_bytes, seed)?;
        self.expected = Some(hash);
        let record = record_at(self.slots[hash as usize & (self.slots.len() - 1)].place)?;
        prefetch_slice(self.records.get(record..record + AHEAD_WORDS).unwrap_or_default());
        // Texts of sources of a kind are about as long as one another. A space among the tags, or none so near, is nothing
        // worse than reading the fields again.
        let from = start + self.text_bytes_min;
        Some(from + position_in_64(input.get(from..)?.first_chunk()?, b' ')?)
    }

    /// The series of the line at `start`.
    #[inline(always)]
    pub(super) fn find(&mut self, input: &[u8], start: usize, seed: u64) -> Option<Known> {
        let guess = *self.records.get(record_at(self.last)? + word::NEXT)?;
        let found = match self.guessed(guess, input, start) {
            true => guess,
            false => self.look_up(input, start, seed, guess)?,
        };
        self.hits += 1;
        self.last = found;
        let record = record_at(found)?;
        let head: &[u32; word::IDS] = self.records[record..].first_chunk()?;
        let kind = &self.kinds[head[word::KIND] as usize];
        Some(Known {
            table: kind.table,
            last_step: kind.last_step,
            text_bytes: head[word::KEY_BYTES] as usize - 1,
            resolved: head[word::STAMP] == self.stamp,
            record,
            kind: head[word::KIND],
        })
    }

    /// Whether order is trusted and the text of series `guess` is at `start`.
    #[inline(always)]
    fn guessed(&mut self, guess: u32, input: &[u8], start: usize) -> bool {
        self.order > 0 && guess > 0 && input[start..].starts_with(self.key(guess))
    }

    #[inline(always)]
    fn key(&self, place: u32) -> &[u8] {
        let record = record_at(place).map_or(&[][..], |at| &self.records[at..]);
        let kind = &self.kinds[record[word::KIND] as usize];
        let text = bytemuck::cast_slice(&record[word::IDS + kind.columns.len()..]);
        &text[..record[word::KEY_BYTES] as usize]
    }

    fn look_up(&mut self, input: &[u8], start: usize, seed: u64, guess: u32) -> Option<u32> {
        let hash = match self.expected {
            Some(hash) => hash,
            None => hashed(&input[start..], self.hashed_bytes, seed)?,
        };
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.place == 0 {
                return None;
            }
            if slot.hash == (hash >> 32) as u32 && input[start..].starts_with(self.key(slot.place)) {
                self.order = if slot.place == guess { self.order + 1 } else { self.order - 1 };
                self.order = self.order.clamp(-ORDER_MAX, ORDER_MAX);
                self.records[record_at(self.last)? + word::NEXT] = slot.place;
                return Some(slot.place);
            }
            at = (at + 1) & mask;
        }
    }

    /// The tags of a series.
    #[inline(always)]
    pub(super) fn tags(&mut self, known: Known) -> SeriesTags<'_> {
        let columns = &*self.kinds[known.kind as usize].columns;
        let (head, rest) = self.records[known.record..].split_at_mut(word::IDS);
        let entries = &self.entries[head[word::ENTRIES] as usize..][..columns.len()];
        SeriesTags { columns, entries, ids: &mut rest[..columns.len()] }
    }

    /// The tags of the series found last now have the ids of the present dictionaries.
    #[inline(always)]
    pub(super) fn resolve(&mut self, known: Known) {
        self.records[known.record + word::STAMP] = self.stamp;
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether a series with so long a text can be learnt.
    pub(super) fn has_room(&self, key_bytes: usize) -> bool {
        let used = size_of_val(&self.records[..]) + size_of_val(&self.entries[..]) + size_of_val(&self.slots[..]);
        key_bytes <= KEY_BYTES_MAX && used + key_bytes < self.bytes_max
    }

    /// Learns a series that [`SeriesCache::find`] did not know. `key` ends with the space; `tags` are columns and
    /// entries in their symbol tables.
    pub(super) fn learn(
        &mut self,
        key: &[u8],
        seed: u64,
        table: u32,
        last_step: StepId,
        tags: impl Iterator<Item = (u32, u32)> + Clone,
    ) {
        // A key ends with a space.
        let Some(hash) = hashed(key, self.hashed_bytes, seed) else { return };
        self.text_bytes_min = self.text_bytes_min.min(key.len() - 1);
        let record = self.records.len();
        let place = (record / word::LINE) as u32 + 1;
        let columns = tags.clone().map(|(column, _)| column).collect();
        let kind = self.kind(Kind { table, last_step, columns });
        let count = self.kinds[kind as usize].columns.len();
        self.records.resize(record + record_words(count, key.len()), 0);
        let words = &mut self.records[record..];
        (words[word::KEY_BYTES], words[word::KIND]) = (key.len() as u32, kind);
        words[word::ENTRIES] = self.entries.len() as u32;
        bytemuck::cast_slice_mut(&mut words[word::IDS + count..])[..key.len()].copy_from_slice(key);
        self.entries.extend(tags.map(|(_, entry)| entry));
        self.count += 1;
        if let Some(last) = record_at(self.last) {
            self.records[last + word::NEXT] = place;
        }
        self.last = place;
        if self.slots.len() < 2 * self.count {
            self.place_anew(2 * self.slots.len(), seed);
        } else if self.occupy(hash, place) > ALIKE_MAX && self.hashed_bytes < KEY_BYTES_MAX {
            self.hashed_bytes *= 4;
            self.place_anew(self.slots.len(), seed);
        }
    }

    /// The number of a kind; one of the last is most likely the same.
    fn kind(&mut self, kind: Kind) -> u32 {
        let recent = self.kinds.iter().enumerate().rev().take(KINDS_LOOKED_AT);
        if let Some((at, _)) = recent.into_iter().find(|(_, other)| **other == kind) {
            return at as u32;
        }
        self.kinds.push(kind);
        self.kinds.len() as u32 - 1
    }

    /// How long the record at a place is.
    #[inline(always)]
    fn record_words(&self, place: u32) -> usize {
        let Some(record) = record_at(place).map(|at| &self.records[at..]) else { return 0 };
        record_words(self.kinds[record[word::KIND] as usize].columns.len(), record[word::KEY_BYTES] as usize)
    }

    #[cold]
    fn place_anew(&mut self, slots: usize, seed: u64) {
        self.slots = vec![Slot::default(); slots];
        let mut place = 1;
        while record_at(place).is_some_and(|at| at < self.records.len()) {
            if let Some(hash) = hashed(self.key(place), self.hashed_bytes, seed) {
                self.occupy(hash, place);
            }
            place += (self.record_words(place) / word::LINE) as u32;
        }
    }

    /// Gives how many others have its hash.
    fn occupy(&mut self, hash: u64, place: u32) -> usize {
        let slot = Slot { place, hash: (hash >> 32) as u32 };
        let mask = self.slots.len() - 1;
        let (mut at, mut alike) = (hash as usize & mask, 0);
        while self.slots[at].place != 0 {
            alike += usize::from(self.slots[at].hash == slot.hash);
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        alike
    }
}

/// Where in `records` the record at a place begins.
#[inline(always)]
fn record_at(place: u32) -> Option<usize> {
    Some(place.checked_sub(1)? as usize * word::LINE)
}

#[inline(always)]
fn record_words(tags: usize, key_bytes: usize) -> usize {
    (word::IDS + tags + key_bytes.div_ceil(size_of::<u32>())).next_multiple_of(word::LINE)
}

/// The hash of a beginning's first bytes, or of those up to its first space; `None` where it ends before.
#[inline(always)]
fn hashed(line: &[u8], bytes: usize, seed: u64) -> Option<u64> {
    match line.first_chunk() {
        Some(first) if bytes == HASHED_BYTES => Some(hash_of_first(first, seed)),
        _ => hashed_any(line, bytes, seed),
    }
}

#[inline(never)]
fn hashed_any(line: &[u8], bytes: usize, seed: u64) -> Option<u64> {
    let first = &line[..line.len().min(bytes)];
    let text = match memchr::memchr(b' ', first) {
        Some(space) => &first[..=space],
        None if first.len() == bytes => first,
        None => return None,
    };
    if bytes > HASHED_BYTES {
        return Some(hash(text, seed));
    }
    let mut padded = [0; HASHED_BYTES];
    padded[..text.len()].copy_from_slice(text);
    Some(hash_of_first(&padded, seed))
}
