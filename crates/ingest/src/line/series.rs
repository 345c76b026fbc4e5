//! Recognizes the beginnings of lines, table and all tags, that occurred before.
//!
//! A source repeats its tags in every line. A series is the text from the start of a line to the space before its
//! fields; recognizing it replaces parsing every tag by one comparison. Sources usually report in turn, so the series
//! that followed the current one last time is tried first. Then the text is looked up by the hash of its first bytes,
//! only as many as distinguish series, since the text is compared in any case. If sources report in no order, the
//! candidate series is prefetched by hash while the fields that appear to follow are parsed; the text is compared
//! afterwards.
//!
//! A series refers to entries of its columns' symbol tables, which persist across batches like the series, and stores
//! the ids of the entries in the current dictionaries.

use super::scan::{FIRST_BYTES, hash, hash_of_first};
use super::step::StepId;
use tidalite_kernels::{position_in_64, prefetch_slice};

/// Layout of a record in words: a header, the ids of its tags, its text including the space, and padding to complete
/// cache lines.
///
/// They are stored together, because each cache line is a miss if sources report in no order. The rarely read entries
/// of its tags are stored separately.
mod word {
    pub const KEY_BYTES: usize = 0;
    pub const KIND: usize = 1;
    /// The series that followed last time, as its place plus one; 0 if there is none.
    pub const NEXT: usize = 2;
    /// The dictionaries of the tags' ids, see [`super::SeriesCache::stamp`].
    pub const STAMP: usize = 3;
    /// Start of the tags' entries in the list of all entries.
    pub const ENTRIES: usize = 4;
    pub const IDS: usize = 5;
    /// Words of a cache line.
    pub const LINE: usize = 16;
}

/// Shared properties of series with the same tags in the same order.
#[derive(Debug, PartialEq)]
struct SeriesKind {
    table: u32,
    last_step: StepId,
    /// Columns of the tags.
    columns: Box<[u32]>,
}

/// A hash table slot of a series. At most half of the slots are used.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Cache line of its record, plus one; 0 for a free slot.
    place: u32,
    /// The upper half of the hash.
    hash: u32,
}

/// The tags of a series, in order.
pub(super) struct SeriesTags<'a> {
    pub columns: &'a [u32],
    /// Entries in the symbol tables of the columns.
    pub entries: &'a [u32],
    /// Ids of these entries in the dictionaries of the series' stamp.
    pub ids: &'a mut [u32],
}

/// A recognized beginning of a line.
#[derive(Clone, Copy)]
pub(super) struct KnownSeries {
    pub table: u32,
    pub last_step: StepId,
    /// Length of the text before the space.
    pub text_bytes: usize,
    /// True if the ids of its tags belong to the current dictionaries.
    pub resolved: bool,
    /// Its kind within the table.
    pub kind: u32,
    record: usize,
}

#[derive(Debug)]
pub(super) struct SeriesCache {
    records: Vec<u32>,
    /// Entries of the tags of all series, in the symbol tables of their columns.
    entries: Vec<u32>,
    count: usize,
    kinds: Vec<SeriesKind>,
    slots: Vec<Slot>,
    /// The place of the series found last; 0 before the first.
    last: u32,
    /// Changes whenever previous ids become invalid.
    stamp: u32,
    /// Score of the order: above zero, the series that followed last time is tried first.
    order: i32,
    /// The hash of the line that [`SeriesCache::expect`] last examined.
    expected: Option<u64>,
    /// Length of the shortest learned text, without its space.
    text_bytes_min: usize,
    bytes_max: usize,
    /// Number of hashed bytes of a beginning, which may end at its first space.
    hashed_bytes: usize,
    /// Lines and hits since the last evaluation.
    lines: u32,
    hits: u32,
    /// Remaining lines that are not examined, and their number after the next bad evaluation.
    pause: u32,
    pause_next: u32,
}

/// Number of lines between two evaluations of the hit rate.
const WINDOW: u32 = 4096;
const PAUSE_MAX: u32 = 16 * WINDOW;
/// Longer beginnings are not looked up.
const KEY_BYTES_MAX: usize = 4096;
/// Initial number of hashed bytes.
const HASHED_BYTES: usize = FIRST_BYTES;
/// Prefetched words of a record: approximately the size of most records.
const AHEAD_WORDS: usize = 4 * word::LINE;
/// If more series than this have the same hash, more bytes are hashed.
const ALIKE_MAX: usize = 4;
/// Number of kinds that a new series is compared with; beyond this number, each series has its own kind.
const KINDS_LOOKED_AT: usize = 16;
/// Limit of the score of the order.
const ORDER_MAX: i32 = 8;

impl SeriesCache {
    /// Creates a cache that examines no lines before `pause` lines have passed.
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

    /// Invalidates the ids of the tags, after other dictionaries began or a row was undone.
    pub(super) fn void_ids(&mut self) {
        match self.stamp.checked_add(1) {
            Some(stamp) => self.stamp = stamp,
            None => self.clear(),
        }
    }

    /// Returns true if lines are examined now; then [`SeriesCache::find`] follows.
    ///
    /// If few lines are recognized, for example series that occur only once, the pauses become longer.
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

    /// Returns the likely start of the fields of the line at `start` if series arrive in no order.
    ///
    /// Prefetches the candidate series.
    ///
    /// [`SeriesCache::find`] follows and decides.
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
        // Texts of similar sources have similar lengths. If a space is among the tags, or none is found, the fields are
        // only parsed again.
        let from = start + self.text_bytes_min;
        Some(from + position_in_64(input.get(from..)?.first_chunk()?, b' ')?)
    }

    /// Returns the series of the line at `start`.
    #[inline(always)]
    pub(super) fn find(&mut self, input: &[u8], start: usize, seed: u64) -> Option<KnownSeries> {
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
        Some(KnownSeries {
            table: kind.table,
            last_step: kind.last_step,
            text_bytes: head[word::KEY_BYTES] as usize - 1,
            resolved: head[word::STAMP] == self.stamp,
            record,
            kind: head[word::KIND],
        })
    }

    /// Returns true if the order is trusted and the text of series `guess` is at `start`.
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

    /// Returns the tags of a series.
    #[inline(always)]
    pub(super) fn tags(&mut self, known: KnownSeries) -> SeriesTags<'_> {
        let columns = &*self.kinds[known.kind as usize].columns;
        let (head, rest) = self.records[known.record..].split_at_mut(word::IDS);
        let entries = &self.entries[head[word::ENTRIES] as usize..][..columns.len()];
        SeriesTags { columns, entries, ids: &mut rest[..columns.len()] }
    }

    /// Marks the tags of the series found last as having ids of the current dictionaries.
    #[inline(always)]
    pub(super) fn resolve(&mut self, known: KnownSeries) {
        self.records[known.record + word::STAMP] = self.stamp;
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns true if a series with a text of this length can be learned.
    pub(super) fn has_room(&self, key_bytes: usize) -> bool {
        let used = size_of_val(&self.records[..]) + size_of_val(&self.entries[..]) + size_of_val(&self.slots[..]);
        key_bytes <= KEY_BYTES_MAX && used + key_bytes < self.bytes_max
    }

    /// Learns a series that [`SeriesCache::find`] did not find. `key` ends with the space; `tags` are columns and
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
        let kind = self.kind(SeriesKind { table, last_step, columns });
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

    /// Returns the number of a kind; one of the recent kinds is usually the same.
    fn kind(&mut self, kind: SeriesKind) -> u32 {
        let recent = self.kinds.iter().enumerate().rev().take(KINDS_LOOKED_AT);
        if let Some((at, _)) = recent.into_iter().find(|(_, other)| **other == kind) {
            return at as u32;
        }
        self.kinds.push(kind);
        self.kinds.len() as u32 - 1
    }

    /// Returns the length of the record at a place.
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

    /// Adds a slot and returns the number of other series with the hash.
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

/// Returns the start of the record of a place in `records`.
#[inline(always)]
fn record_at(place: u32) -> Option<usize> {
    Some(place.checked_sub(1)? as usize * word::LINE)
}

#[inline(always)]
fn record_words(tags: usize, key_bytes: usize) -> usize {
    (word::IDS + tags + key_bytes.div_ceil(size_of::<u32>())).next_multiple_of(word::LINE)
}

/// Returns the hash of a beginning's first bytes, up to its first space; `None` if the line ends before.
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
