//! The beginnings of lines, table and all tags, that were seen before.
//!
//! A source repeats its tags in every line. The text from the start of a line to the space before its fields is a
//! series; knowing it, one comparison replaces reading every tag. Sources usually report in turn, so the series that
//! followed the present one last time is tried first, then the text is looked up by hash. Where sources report in no
//! order, a series is looked up one line ahead, so that memory fetches it while the present line is read.
//!
//! A series points at entries of its columns' symbol tables, which outlive batches as it does, and keeps the ids
//! that they have in the present batch.

use super::scan::hash;
use super::table::StepId;
use tidalite_kernels::{prefetch, prefetch_slice};

#[derive(Debug)]
struct Series {
    key_bytes: u32,
    tag_count: u32,
    table: u32,
    last_step: StepId,
    next: u32,
    /// The batch that the ids of its tags are of, as [`SeriesCache::stamp`].
    stamp: u64,
}

/// Where a series is, by hash. At most half of the slots are taken.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Number of the series plus one; 0 is free.
    series: u32,
    /// The upper half of its hash.
    hash: u32,
    /// Its text in `keys`, ending with the space.
    key_at: u32,
    /// Its tags in `tags`.
    tags_at: u32,
}

/// A tag of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesTag {
    pub column: u32,
    /// In the symbol table of the column.
    pub entry: u32,
    /// Of that entry in the batch that the series is stamped with.
    pub id: u32,
}

/// What the beginning of a line stands for.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub table: u32,
    pub last_step: StepId,
    /// Length of the text before the space.
    pub text_bytes: usize,
    /// Whether the ids of its tags are those of the present batch.
    pub resolved: bool,
    tags_at: usize,
    tag_count: usize,
}

/// The beginning of the next line, hashed already.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// Where that line starts; `usize::MAX` for none.
    start: usize,
    key_bytes: usize,
    hash: u64,
}

const NOTHING_AHEAD: Ahead = Ahead { start: usize::MAX, key_bytes: 0, hash: 0 };

#[derive(Debug)]
pub(super) struct SeriesCache {
    keys: Vec<u8>,
    series: Vec<Series>,
    tags: Vec<SeriesTag>,
    /// The slot of each series.
    places: Vec<Slot>,
    slots: Vec<Slot>,
    last: u32,
    /// Changes whenever ids given before stop being valid.
    stamp: u64,
    /// How often the series that followed last time did so again: above zero, it is tried first.
    order: i32,
    ahead: Ahead,
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
/// The next line is looked for so far behind the tags of the present one.
const AHEAD_BYTES_MAX: usize = 1024;
/// So many lines in another order than before, and the order is no longer trusted.
const ORDER_MAX: i32 = 8;

impl SeriesCache {
    /// Looks at no lines before `pause` went by.
    pub(super) fn new(bytes_max: usize, pause: u32) -> SeriesCache {
        SeriesCache {
            keys: Vec::new(),
            series: Vec::new(),
            tags: Vec::new(),
            places: Vec::new(),
            slots: vec![Slot::default(); 64],
            last: 0,
            stamp: 1,
            order: ORDER_MAX,
            ahead: NOTHING_AHEAD,
            bytes_max: bytes_max.min(u32::MAX as usize),
            lines: 0,
            hits: 0,
            pause,
            pause_next: WINDOW,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = SeriesCache::new(self.bytes_max, self.pause);
    }

    /// Another input begins: what was seen of the one before says nothing about it.
    pub(super) fn begin_input(&mut self) {
        self.ahead = NOTHING_AHEAD;
    }

    /// The ids of the tags are void: another batch began, or a row was undone.
    pub(super) fn void_ids(&mut self) {
        self.stamp += 1;
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
        let found = match self.guessed(guess, input, start) {
            Some(place) => place,
            None => self.look_up(input, start, seed, guess)?,
        };
        self.hits += 1;
        self.last = found.series - 1;
        let series = &self.series[self.last as usize];
        let known = Known {
            table: series.table,
            last_step: series.last_step,
            text_bytes: series.key_bytes as usize - 1,
            resolved: series.stamp == self.stamp,
            tags_at: found.tags_at as usize,
            tag_count: series.tag_count as usize,
        };
        if self.order <= 0 {
            self.look_ahead(input, start + known.text_bytes, seed);
        }
        Some(known)
    }

    /// The place of series `guess` if order is trusted and its text is at `start`.
    #[inline(always)]
    fn guessed(&mut self, guess: u32, input: &[u8], start: usize) -> Option<Slot> {
        if self.order <= 0 {
            return None;
        }
        let place = *self.places.get(guess as usize)?;
        input[start..].starts_with(self.key(place)).then_some(place)
    }

    #[inline(always)]
    fn key(&self, place: Slot) -> &[u8] {
        let bytes = self.series[place.series as usize - 1].key_bytes;
        &self.keys[place.key_at as usize..][..bytes as usize]
    }

    fn look_up(&mut self, input: &[u8], start: usize, seed: u64, guess: u32) -> Option<Slot> {
        let Ahead { key_bytes, hash, .. } = match std::mem::replace(&mut self.ahead, NOTHING_AHEAD) {
            ahead if ahead.start == start => ahead,
            _ => beginning(input, start, seed)?,
        };
        let key = &input[start..start + key_bytes];
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let found = slot.series.checked_sub(1)?;
            if slot.hash == (hash >> 32) as u32 && self.key(slot) == key {
                self.order = if found == guess { self.order + 1 } else { self.order - 1 };
                self.order = self.order.clamp(-ORDER_MAX, ORDER_MAX);
                self.series[self.last as usize].next = found;
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Asks for the series of the line behind the one whose tags end at `from`.
    #[inline(always)]
    fn look_ahead(&mut self, input: &[u8], from: usize, seed: u64) {
        let rest = &input[from..input.len().min(from + AHEAD_BYTES_MAX)];
        let Some(end) = memchr::memchr(b'\n', rest) else { return };
        let Some(ahead) = beginning(input, from + end + 1, seed) else { return };
        let slot = self.slots[ahead.hash as usize & (self.slots.len() - 1)];
        if let Some(series) = slot.series.checked_sub(1) {
            prefetch(&self.series, series as usize);
            let key = self.keys.get(slot.key_at as usize..slot.key_at as usize + ahead.key_bytes);
            prefetch_slice(key.unwrap_or_default());
            prefetch(&self.tags, slot.tags_at as usize);
            prefetch(&self.tags, slot.tags_at as usize + 6);
        }
        self.ahead = ahead;
    }

    /// The tags of a series.
    #[inline(always)]
    pub(super) fn tags(&mut self, known: Known) -> &mut [SeriesTag] {
        &mut self.tags[known.tags_at..known.tags_at + known.tag_count]
    }

    /// The tags of the series found last now have the ids of the present batch.
    #[inline(always)]
    pub(super) fn resolve(&mut self) {
        self.series[self.last as usize].stamp = self.stamp;
    }

    /// Whether a series with so long a text can be learnt.
    pub(super) fn has_room(&self, key_bytes: usize) -> bool {
        let each = size_of::<Series>() + 4 * size_of::<Slot>();
        let used = self.keys.len() + self.series.len() * each + size_of_val(&self.tags[..]);
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
        tags: impl Iterator<Item = (u32, u32)>,
    ) {
        let (tags_at, id) = (self.tags.len(), self.series.len() as u32);
        self.tags.extend(tags.map(|(column, entry)| SeriesTag { column, entry, id: 0 }));
        let hash = hash(key, seed);
        let (key_at, tag_count) = (self.keys.len() as u32, (self.tags.len() - tags_at) as u32);
        let place = Slot { series: id + 1, hash: (hash >> 32) as u32, key_at, tags_at: tags_at as u32 };
        let key_bytes = key.len() as u32;
        self.series.push(Series { key_bytes, tag_count, table, last_step, next: u32::MAX, stamp: 0 });
        self.places.push(place);
        self.keys.extend_from_slice(key);
        self.series[self.last as usize].next = id;
        self.last = id;
        if self.slots.len() < 2 * self.series.len() {
            self.grow(seed);
        } else {
            self.occupy(hash, place);
        }
    }

    #[cold]
    fn grow(&mut self, seed: u64) {
        self.slots = vec![Slot::default(); 2 * self.slots.len()];
        for at in 0..self.places.len() {
            let place = self.places[at];
            self.occupy(hash(self.key(place), seed), place);
        }
    }

    fn occupy(&mut self, hash: u64, place: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].series != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = place;
    }
}

/// The text at `start` up to its first space.
#[inline(always)]
fn beginning(input: &[u8], start: usize, seed: u64) -> Option<Ahead> {
    let rest = &input[start..input.len().min(start + KEY_BYTES_MAX)];
    let key_bytes = memchr::memchr(b' ', rest)? + 1;
    Some(Ahead { start, key_bytes, hash: hash(&rest[..key_bytes], seed) })
}
