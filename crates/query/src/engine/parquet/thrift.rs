//! Reader of Thrift's compact protocol that allocates nothing and bounds nesting.
//!
//! Every function returns `None` at bytes that are not of the protocol, and at lists with more elements than bytes
//! remain: a list of a length that is only claimed is refused before upstream allocates it.

/// Maximum nesting of structures and lists; the metadata of Parquet have less than ten levels.
const DEPTH_MAX: usize = 32;

/// Type of a field or element in the compact protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldType(u8);

impl FieldType {
    pub const LIST: FieldType = FieldType(9);
    pub const STRUCT: FieldType = FieldType(12);

    /// Returns true for integers of 16, 32 and 64 bits, which have one encoding.
    pub fn is_integer(self) -> bool {
        matches!(self.0, 4..=6)
    }
}

/// A cursor over bytes.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// Returns the number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Reads a structure. `field` gets the id and the type of each field and returns true if it has read the value.
    pub fn structure(&mut self, field: &mut dyn FnMut(&mut Cursor<'a>, i16, FieldType) -> Option<bool>) -> Option<()> {
        self.structure_below(DEPTH_MAX, field)
    }

    /// Reads the head of a list: the number of elements, at most the number of remaining bytes, and their type.
    pub fn list(&mut self) -> Option<(usize, FieldType)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            count => usize::from(count),
        };
        (count <= self.bytes.len() - self.at).then_some((count, FieldType(head & 15)))
    }

    /// Reads an integer.
    pub fn integer(&mut self) -> Option<i64> {
        let zigzag = self.varint()?;
        Some((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// Skips a value of a field.
    pub fn skip(&mut self, kind: FieldType) -> Option<()> {
        self.skip_below(DEPTH_MAX, kind)
    }

    fn structure_below(
        &mut self,
        depth: usize,
        field: &mut dyn FnMut(&mut Cursor<'a>, i16, FieldType) -> Option<bool>,
    ) -> Option<()> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            let kind = FieldType(head & 15);
            if kind.0 == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => i16::try_from(self.integer()?).ok()?,
                delta => id.checked_add(i16::from(delta))?,
            };
            if !field(self, id, kind)? {
                self.skip_below(depth, kind)?;
            }
        }
    }

    fn skip_below(&mut self, depth: usize, kind: FieldType) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind.0 {
            // A Boolean field has its value in its type.
            1 | 2 => Some(()),
            3 => self.advance(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.advance(8),
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.advance(length)
            }
            9 | 10 => {
                let (count, element) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(depth, element))
            }
            11 => self.skip_map(depth),
            12 => self.structure_below(depth, &mut |_, _, _| Some(false)),
            13 => self.advance(16),
            _ => None,
        }
    }

    fn skip_map(&mut self, depth: usize) -> Option<()> {
        let count = usize::try_from(self.varint()?).ok()?;
        if count == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        if count > self.bytes.len() - self.at {
            return None;
        }
        (0..count).try_for_each(|_| {
            self.skip_element(depth, FieldType(kinds >> 4))?;
            self.skip_element(depth, FieldType(kinds & 15))
        })
    }

    /// Skips an element of a list or map, where a Boolean is a byte.
    fn skip_element(&mut self, depth: usize, kind: FieldType) -> Option<()> {
        if matches!(kind.0, 1 | 2) { self.advance(1) } else { self.skip_below(depth, kind) }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn advance(&mut self, count: usize) -> Option<()> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len())?;
        self.at = end;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(bytes: &[u8]) -> Option<usize> {
        let mut cursor = Cursor::new(bytes);
        cursor.skip(FieldType::STRUCT)?;
        Some(cursor.position())
    }

    #[test]
    fn structures_end_where_they_stop() {
        // Field 1: i32 150; field 2: binary "ab"; field 18, absolute: list of two Booleans; stop; one byte more.
        let bytes = [0x15, 0xac, 0x02, 0x18, 2, b'a', b'b', 0x09, 36, 0x21, 1, 2, 0, 7];
        assert_eq!(skipped(&bytes), Some(13));
        let mut found = Vec::new();
        let mut cursor = Cursor::new(&bytes);
        let read = cursor.structure(&mut |cursor, id, kind| {
            found.push((id, if kind.is_integer() { cursor.integer()? } else { 0 }));
            Some(kind.is_integer())
        });
        assert_eq!((read, found), (Some(()), vec![(1, 150), (2, 0), (18, 0)]));
    }

    #[test]
    fn claims_beyond_the_bytes_are_refused() {
        assert_eq!(skipped(&[0x15]), None, "no value");
        assert_eq!(skipped(&[0x18, 5, b'a', 0]), None, "a text that is longer");
        assert_eq!(skipped(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0]), None, "a list of 2^31 structures");
        assert_eq!(skipped(&[0x1b, 0xff, 0xff, 0x03, 0x55, 0, 0]), None, "a map of many pairs");
        assert_eq!(skipped(&[0x15, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]), None, "an endless number");
    }

    #[test]
    fn nesting_is_bounded() {
        assert_eq!(skipped(&[0x1c; 1 << 20]), None);
        let nested = |levels: usize| [vec![0x1c; levels], vec![0; levels + 1]].concat();
        assert_eq!(skipped(&nested(20)), Some(41));
        assert_eq!(skipped(&nested(100)), None);
    }
}
