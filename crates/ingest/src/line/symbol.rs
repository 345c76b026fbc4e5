//! The strings of one symbol column, and their ids in the current dictionary.
//!
//! Strings are kept from batch to batch, ids as long as the dictionary continues: an entry has the number of the
//! dictionary (`epoch`) of its id, so that a new dictionary starts without a change of the entries.

use super::scan::Tag;
use tidalite_types::Views;

#[derive(Debug)]
struct SymbolEntry {
    /// See [`Tag::head`]; complete for a string of up to 16 bytes.
    head: [u64; 2],
    hash: u64,
    len: u32,
    /// Position of a longer string in `data`.
    at: u32,
    /// The dictionary of `id`; 0 if there is none.
    epoch: u32,
    id: u32,
}

impl SymbolEntry {
    /// Returns the bytes after those in the head.
    fn rest<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        &data[self.at as usize..][HEAD_BYTES..self.len as usize]
    }
}

const HEAD_BYTES: usize = 16;

/// Open-addressing hash table with linear probing, at most half full.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    /// Entry number plus one; 0 for a free slot.
    slots: Vec<u32>,
    entries: Vec<SymbolEntry>,
    data: Vec<u8>,
}

impl SymbolTable {
    /// Returns the id of `tag` in the dictionary `epoch`, if it has one.
    #[inline(always)]
    pub(crate) fn find(&self, tag: &Tag<'_>, epoch: u32) -> Option<u32> {
        let entry = &self.entries[self.position(tag)?];
        (entry.epoch == epoch).then_some(entry.id)
    }

    #[inline(always)]
    fn position(&self, tag: &Tag<'_>) -> Option<usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = (tag.hash >> 32) as usize & mask;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == 0 {
                return None;
            }
            let entry = &self.entries[slot as usize - 1];
            // The length is not checked first, because lengths vary from line to line.
            let is_it = entry.head == tag.head && entry.len as usize == tag.text.len();
            if is_it && (tag.text.len() <= HEAD_BYTES || entry.rest(&self.data) == &tag.text[HEAD_BYTES..]) {
                return Some(slot as usize - 1);
            }
            at = (at + 1) & mask;
        }
    }

    /// Assigns the next id of `dictionary` to `tag`, which [`SymbolTable::find`] did not find.
    /// Returns the entry, to be removed if the row is undone, and the growth of the table in bytes.
    pub(crate) fn add(&mut self, tag: &Tag<'_>, epoch: u32, dictionary: &mut Views) -> (u32, usize) {
        let id = dictionary.len() as u32;
        dictionary.push(tag.text);
        if let Some(position) = self.position(tag) {
            let entry = &mut self.entries[position];
            (entry.epoch, entry.id) = (epoch, id);
            return (position as u32, 0);
        }
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.grow();
        }
        let at = self.data.len() as u32;
        if tag.text.len() > HEAD_BYTES {
            self.data.extend_from_slice(tag.text);
        }
        self.entries.push(SymbolEntry { head: tag.head, hash: tag.hash, len: tag.text.len() as u32, at, epoch, id });
        let position = self.entries.len() as u32;
        self.occupy(tag.hash, position);
        (position - 1, size_of::<SymbolEntry>() + 8 + tag.text.len())
    }

    /// Returns the entry of a string that was added in any batch.
    pub(super) fn entry(&self, tag: &Tag<'_>) -> Option<u32> {
        self.position(tag).map(|position| position as u32)
    }

    /// Returns the id of an entry in the dictionary `epoch`, if it has one.
    #[inline(always)]
    pub(super) fn id(&self, entry: u32, epoch: u32) -> Option<u32> {
        let entry = self.entries.get(entry as usize)?;
        (entry.epoch == epoch).then_some(entry.id)
    }

    /// Assigns the next id of `dictionary` to an entry without one, if the dictionary is within its limits.
    pub(super) fn revive(&mut self, entry: u32, epoch: u32, dictionary: &mut Views) -> Option<u32> {
        let id = dictionary.len() as u32;
        let entry = self.entries.get_mut(entry as usize)?;
        let bytes = entry.head.map(u64::to_le_bytes);
        let text = match bytes.as_flattened().get(..entry.len as usize) {
            Some(text) => text,
            None => &self.data[entry.at as usize..][..entry.len as usize],
        };
        if !dictionary.has_room(text.len()) {
            return None;
        }
        dictionary.push(text);
        (entry.epoch, entry.id) = (epoch, id);
        Some(id)
    }

    pub(crate) fn forget(&mut self, entry: u32) {
        self.entries[entry as usize].epoch = 0;
    }

    fn occupy(&mut self, hash: u64, value: u32) {
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = value;
    }

    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 2).max(16)];
        for position in 0..self.entries.len() {
            self.occupy(self.entries[position].hash, position as u32 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::tag_of;
    use super::*;

    #[test]
    fn strings_keep_their_id_within_a_batch_and_lose_it_with_the_next() {
        let mut table = SymbolTable::default();
        let texts: Vec<String> = (0..5_000).map(|i| "x".repeat(i % 30) + &i.to_string()).collect();
        for epoch in 1..3 {
            let mut dictionary = Views::new();
            for (id, text) in texts.iter().enumerate() {
                let tag = tag_of(text.as_bytes(), 3);
                assert_eq!(table.find(&tag, epoch), None);
                let (entry, grown) = table.add(&tag, epoch, &mut dictionary);
                assert_eq!(grown == 0, epoch == 2);
                assert_eq!(table.find(&tag, epoch), Some(id as u32));
                if id % 7 == 0 {
                    table.forget(entry);
                    dictionary.truncate(id);
                    assert_eq!(table.find(&tag, epoch), None);
                    table.add(&tag, epoch, &mut dictionary);
                }
            }
            assert!(dictionary.iter().eq(texts.iter().map(String::as_bytes)));
        }
    }
}
