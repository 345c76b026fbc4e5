//! The beginnings of lines, table and all tags, that were seen before.
//!
//! A source repeats its tags in every line. The text from the start of a line to the space before its fields is a
//! series; knowing it, one comparison replaces reading every tag. Sources usually report in turn, so the series that
//! followed the present one last time is tried first, then the text is looked up by the hash of its first bytes: as few
//! as tell series apart, since the text is compared anyway. Where sources report in no
//! order, a series is looked up one line ahead and its slot asked for two lines ahead, so that memory fetches them while
//! the present line is read.
//!
//! A series points at entries of its columns' symbol tables, which outlive batches as it does, and keeps the ids
//! that they have in the present batch.

use super::scan::hash;
use super::table::StepId;
use tidalite_kernels::{prefetch, prefetch_slice};

#[derive(Debug)]
struct Series {
    key_bytes: u32,
    /// The columns of its tags in `lists`.
    list: u32,
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
    /// Its tags in `entries` and `ids`.
    tags_at: u32,
}

/// The tags of a series, one after the other.
pub(super) struct SeriesTags<'a> {
    pub columns: &'a [u32],
    /// In the symbol tables of the columns.
    pub entries: &'a [u32],
    /// Of these entries in the batch that the series is stamped with.
    pub ids: &'a mut [u32],
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
    list: u32,
}

/// The beginning of the next line, hashed already.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    /// Where that line starts; `usize::MAX` for none.
    start: usize,
    hashed: Hashed,
}

#[derive(Clone, Copy, Debug)]
struct Hashed {
    bytes: usize,
    hash: u64,
}

const NOTHING_AHEAD: Ahead = Ahead { start: usize::MAX, hashed: Hashed { bytes: 0, hash: 0 } };

#[derive(Debug)]
pub(super) struct SeriesCache {
    keys: Vec<u8>,
    series: Vec<Series>,
    /// Columns of tags, as they come together.
    lists: Vec<Box<[u32]>>,
    entries: Vec<u32>,
    /// Apart from the entries, which only the first line of a batch needs: less memory to go through.
    ids: Vec<u32>,
    /// The slot of each series.
    places: Vec<Slot>,
    slots: Vec<Slot>,
    last: u32,
    /// Changes whenever ids given before stop being valid.
    stamp: u64,
    /// How often the series that followed last time did so again: above zero, it is tried first.
    order: i32,
    /// The next line, and the one behind it.
    ahead: Ahead,
    far: Ahead,
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
const HASHED_BYTES: usize = 32;
/// Where more series than these have one hash, more is hashed.
const ALIKE_MAX: usize = 4;
/// The next line is looked for so far behind the tags of the present one.
const AHEAD_BYTES_MAX: usize = 1024;
/// Lists of columns that a new series is compared with: more kinds of series at a time each have their own.
const LISTS_LOOKED_AT: usize = 16;
/// So many lines in another order than before, and the order is no longer trusted.
const ORDER_MAX: i32 = 8;

impl SeriesCache {
    /// Looks at no lines before `pause` went by.
    pub(super) fn new(bytes_max: usize, pause: u32) -> SeriesCache {
        SeriesCache {
            keys: Vec::new(),
            series: Vec::new(),
            lists: Vec::new(),
            entries: Vec::new(),
            ids: Vec::new(),
            places: Vec::new(),
            slots: vec![Slot::default(); 64],
            last: 0,
            stamp: 1,
            order: ORDER_MAX,
            ahead: NOTHING_AHEAD,
            far: NOTHING_AHEAD,
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

    /// Another input begins: what was seen of the one before says nothing about it.
    pub(super) fn begin_input(&mut self) {
        (self.ahead, self.far) = (NOTHING_AHEAD, NOTHING_AHEAD);
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
            list: series.list,
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
        let Hashed { hash, .. } = match std::mem::replace(&mut self.ahead, NOTHING_AHEAD) {
            ahead if ahead.start == start => ahead.hashed,
            _ => hashed(&input[start..], self.hashed_bytes, seed)?,
        };
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let found = slot.series.checked_sub(1)?;
            if slot.hash == (hash >> 32) as u32 && input[start..].starts_with(self.key(slot)) {
                self.order = if found == guess { self.order + 1 } else { self.order - 1 };
                self.order = self.order.clamp(-ORDER_MAX, ORDER_MAX);
                self.series[self.last as usize].next = found;
                return Some(slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// Asks for the series of the line behind the one whose tags end at `from`, and for the slot of the line behind that.
    #[inline(always)]
    fn look_ahead(&mut self, input: &[u8], from: usize, seed: u64) {
        let mask = self.slots.len() - 1;
        let next = match std::mem::replace(&mut self.far, NOTHING_AHEAD) {
            far if far.start > from && far.start != usize::MAX => far,
            _ => match self.next_line(input, from, seed) {
                Some(next) => next,
                None => return,
            },
        };
        if let Some(far) = self.next_line(input, next.start + next.hashed.bytes, seed) {
            prefetch(&self.slots, far.hashed.hash as usize & mask);
            self.far = far;
        }
        let slot = self.slots[next.hashed.hash as usize & mask];
        if let Some(series) = slot.series.checked_sub(1) {
            prefetch(&self.series, series as usize);
            // About as long as that of the present line.
            let key_bytes = self.series[self.last as usize].key_bytes as usize;
            let key = self.keys.get(slot.key_at as usize..self.keys.len().min(slot.key_at as usize + key_bytes));
            prefetch_slice(key.unwrap_or_default());
            for tag in [0, 9] {
                prefetch(&self.ids, slot.tags_at as usize + tag);
                prefetch(&self.entries, slot.tags_at as usize + tag);
            }
        }
        self.ahead = next;
    }

    /// The beginning of the line behind the one that `from` is in.
    #[inline(always)]
    fn next_line(&self, input: &[u8], from: usize, seed: u64) -> Option<Ahead> {
        let rest = &input[from..input.len().min(from + AHEAD_BYTES_MAX)];
        let start = from + memchr::memchr(b'\n', rest)? + 1;
        Some(Ahead { start, hashed: hashed(&input[start..], self.hashed_bytes, seed)? })
    }

    /// The tags of a series.
    #[inline(always)]
    pub(super) fn tags(&mut self, known: Known) -> SeriesTags<'_> {
        let columns = &*self.lists[known.list as usize];
        let tags = known.tags_at..known.tags_at + columns.len();
        SeriesTags { columns, entries: &self.entries[tags.clone()], ids: &mut self.ids[tags] }
    }

    /// The tags of the series found last now have the ids of the present batch.
    #[inline(always)]
    pub(super) fn resolve(&mut self) {
        self.series[self.last as usize].stamp = self.stamp;
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.series.len()
    }

    /// Whether a series with so long a text can be learnt.
    pub(super) fn has_room(&self, key_bytes: usize) -> bool {
        let each = size_of::<Series>() + 4 * size_of::<Slot>();
        let used = self.keys.len() + self.series.len() * each + 2 * size_of_val(&self.entries[..]);
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
        let Some(Hashed { hash, .. }) = hashed(key, self.hashed_bytes, seed) else { return };
        let (tags_at, id) = (self.entries.len(), self.series.len() as u32);
        self.entries.extend(tags.clone().map(|(_, entry)| entry));
        self.ids.resize(self.entries.len(), 0);
        let list = self.list(tags.map(|(column, _)| column));
        let key_at = self.keys.len() as u32;
        let place = Slot { series: id + 1, hash: (hash >> 32) as u32, key_at, tags_at: tags_at as u32 };
        let key_bytes = key.len() as u32;
        self.series.push(Series { key_bytes, list, table, last_step, next: u32::MAX, stamp: 0 });
        self.places.push(place);
        self.keys.extend_from_slice(key);
        self.series[self.last as usize].next = id;
        self.last = id;
        if self.slots.len() < 2 * self.series.len() {
            self.place_anew(2 * self.slots.len(), seed);
        } else if self.occupy(hash, place) > ALIKE_MAX && self.hashed_bytes < KEY_BYTES_MAX {
            self.hashed_bytes *= 4;
            self.begin_input();
            self.place_anew(self.slots.len(), seed);
        }
    }

    /// The number of a list of columns; one of the last is most likely the same.
    fn list(&mut self, columns: impl Iterator<Item = u32> + Clone) -> u32 {
        let is_it = |list: &Box<[u32]>| columns.clone().eq(list.iter().copied());
        let recent = self.lists.iter().enumerate().rev().take(LISTS_LOOKED_AT);
        if let Some((at, _)) = recent.into_iter().find(|(_, list)| is_it(list)) {
            return at as u32;
        }
        self.lists.push(columns.collect());
        self.lists.len() as u32 - 1
    }

    #[cold]
    fn place_anew(&mut self, slots: usize, seed: u64) {
        self.slots = vec![Slot::default(); slots];
        for at in 0..self.places.len() {
            let place = self.places[at];
            if let Some(Hashed { hash, .. }) = hashed(self.key(place), self.hashed_bytes, seed) {
                let place = Slot { hash: (hash >> 32) as u32, ..place };
                self.places[at] = place;
                self.occupy(hash, place);
            }
        }
    }

    /// Gives how many others have its hash.
    fn occupy(&mut self, hash: u64, place: Slot) -> usize {
        let mask = self.slots.len() - 1;
        let (mut at, mut alike) = (hash as usize & mask, 0);
        while self.slots[at].series != 0 {
            alike += usize::from(self.slots[at].hash == place.hash);
            at = (at + 1) & mask;
        }
        self.slots[at] = place;
        alike
    }
}

/// The hash of a beginning's first bytes, or of those up to its first space; `None` where it ends before.
#[inline(always)]
fn hashed(line: &[u8], bytes: usize, seed: u64) -> Option<Hashed> {
    let first = &line[..line.len().min(bytes)];
    let text = match memchr::memchr(b' ', first) {
        Some(space) => &first[..=space],
        None if first.len() == bytes => first,
        None => return None,
    };
    Some(Hashed { bytes: text.len(), hash: hash(text, seed) })
}
