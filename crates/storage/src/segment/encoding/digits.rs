//! Returns a block's numbers by vector as packed integers, for sums: see [`Digits`].

use super::chunk::Layout;
use super::frames::{Frame, Framed, Frames};
use super::vectors::is_whole;
use super::{EncodedBlock, alp, packed};
use crate::segment::format::Encoding;
use tidalite_kernels::{DigitWords, Digits, FoldValues, unpack_distances, unpack_narrow};
use tidalite_types::VECTOR_ROWS;
use tidalite_types::column_type::Physical;

/// The vectors of a block; each is valid until the next is loaded.
pub struct DigitVectors<'a> {
    packed: PackedColumn<'a>,
    rows: usize,
    /// Validity bits in words; empty if all rows have values.
    validity: Vec<u64>,
    /// Words in half of the bytes, if they fit.
    narrow: Box<[u16; VECTOR_ROWS]>,
    words: Box<[u32; VECTOR_ROWS]>,
    others: Vec<u32>,
    ints: Vec<i64>,
    floats: Vec<f64>,
}

enum PackedColumn<'a> {
    /// The frames, the type, and true if floating point is requested.
    Ints(Frames<'a>, Physical, bool),
    Decimals(alp::Vectors<'a>),
}

impl EncodedBlock {
    /// Returns the packed integers of integers of 8 to 64 bits or of floating point of 64 bits.
    ///
    /// With `as_floats`, integers are returned as floating point. Returns `None` for other types and if the values are
    /// not packed.
    pub(in crate::segment) fn digits(&self, as_floats: bool) -> Result<Option<DigitVectors<'_>>, String> {
        use Physical::{F64, I8, I16, I32, I64};
        let payload = || Ok::<_, String>(Layout::of(&self.entry, self.physical, self.rows)?.payload(&self.bytes));
        let packed = match (self.entry.encoding, self.physical) {
            (Encoding::Packed, I8 | I16 | I32 | I64) => {
                PackedColumn::Ints(packed::frames(payload()?, self)?, self.physical, as_floats)
            }
            (Encoding::Alp, F64) if as_floats => PackedColumn::Decimals(alp::Vectors::parse(payload()?, self)?),
            _ => return Ok(None),
        };
        Ok(Some(DigitVectors {
            packed,
            rows: self.rows,
            validity: self.validity()?,
            narrow: Box::new([0; VECTOR_ROWS]),
            words: Box::new([0; VECTOR_ROWS]),
            others: Vec::new(),
            ints: Vec::new(),
            floats: Vec::new(),
        }))
    }
}

impl DigitVectors<'_> {
    /// Returns true if all rows of a vector have values that are packed in at most [`Digits::WIDTH_MAX`] bits.
    #[must_use]
    pub fn has(&self, i: usize) -> bool {
        let rows = (self.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
        let (base, width) = match &self.packed {
            PackedColumn::Decimals(vectors) => of_frame(&vectors.vector(i).1),
            PackedColumn::Ints(frames, Physical::I8, _) => of_frame(&frames.vector::<i8>(i)),
            PackedColumn::Ints(frames, Physical::I16, _) => of_frame(&frames.vector::<i16>(i)),
            PackedColumn::Ints(frames, Physical::I32, _) => of_frame(&frames.vector::<i32>(i)),
            PackedColumn::Ints(frames, ..) => of_frame(&frames.vector::<i64>(i)),
        };
        is_whole(&self.validity, i, rows) && width <= Digits::WIDTH_MAX && base.unsigned_abs() <= Digits::BASE_MAX
    }

    /// Returns the rows of a vector for which [`DigitVectors::has`] is true.
    pub fn vector(&mut self, i: usize) -> Digits<'_> {
        let rows = (self.rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
        let DigitVectors { packed, narrow, words, others, ints, floats, .. } = self;
        let mut room = Room { narrow, words, others };
        let (base, width, scale) = match packed {
            PackedColumn::Decimals(vectors) => {
                let (scale, frame) = vectors.vector(i);
                let of = room.unpack(&frame, floats, |bits| f64::from_bits(bits.cast_unsigned()));
                (of.0, of.1, scale)
            }
            PackedColumn::Ints(frames, physical, as_floats) => {
                let (base, width) = match physical {
                    Physical::I8 => room.unpack(&frames.vector::<i8>(i), ints, i64::from),
                    Physical::I16 => room.unpack(&frames.vector::<i16>(i), ints, i64::from),
                    Physical::I32 => room.unpack(&frames.vector::<i32>(i), ints, i64::from),
                    _ => room.unpack(&frames.vector::<i64>(i), ints, |value| value),
                };
                if *as_floats {
                    floats.clear();
                    floats.extend(ints.iter().map(|value| *value as f64));
                }
                (base, width, 0)
            }
        };
        let is_float = matches!(packed, PackedColumn::Decimals(_) | PackedColumn::Ints(.., true));
        let numbers = if is_float { FoldValues::Floats(floats) } else { FoldValues::Ints(ints) };
        let words = match width {
            0..=DigitWords::NARROW_MAX => DigitWords::Narrow(&narrow[..rows]),
            _ => DigitWords::Wide(&words[..rows]),
        };
        Digits { words, width, base, scale, others, numbers }
    }
}

fn of_frame<T: Framed + Into<i64>>(frame: &Frame<'_, T>) -> (i64, u32) {
    (frame.reference.into(), frame.width)
}

struct Room<'a> {
    narrow: &'a mut [u16; VECTOR_ROWS],
    words: &'a mut [u32; VECTOR_ROWS],
    others: &'a mut Vec<u32>,
}

impl Room<'_> {
    /// Unpacks a vector and returns the reference and the width.
    fn unpack<T: Framed + Into<i64>, V>(
        &mut self,
        frame: &Frame<'_, T>,
        numbers: &mut Vec<V>,
        number: impl Fn(T) -> V,
    ) -> (i64, u32) {
        match frame.width {
            0..=DigitWords::NARROW_MAX => unpack_narrow(frame.lines, frame.width, frame.rows, self.narrow),
            _ => unpack_distances(frame.lines, frame.width, frame.rows, self.words),
        }
        self.others.clear();
        numbers.clear();
        for (row, value) in frame.exceptions() {
            self.others.push(row as u32);
            numbers.push(number(value));
        }
        of_frame(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{TYPES, random_column};
    use super::*;
    use crate::segment::{Effort, encode};
    use std::collections::HashSet;
    use tidalite_kernels::alp::value;

    /// Returns the bits of the numbers, which distinguish −0 and NaN.
    fn plainly(digits: &Digits<'_>, is_float: bool) -> Vec<u64> {
        let words: Vec<u64> = (0..digits.words.len()).map(|row| digits.words.at(row)).collect();
        let number = |word: &u64| match (digits.base + word.cast_signed(), is_float) {
            (whole, true) => value::<f64>(whole, digits.scale).to_bits(),
            (whole, false) => whole.cast_unsigned(),
        };
        let mut numbers: Vec<u64> = words.iter().map(number).collect();
        for (at, row) in digits.others.iter().enumerate() {
            numbers[*row as usize] = match digits.numbers {
                FoldValues::Floats(floats) => floats[at].to_bits(),
                FoldValues::Ints(ints) => ints[at].cast_unsigned(),
                FoldValues::Nothing => unreachable!("numbers of others"),
            };
        }
        assert!(words.iter().all(|word| *word < (1 << digits.width)));
        numbers
    }

    #[test]
    fn digits_stand_for_the_values_of_their_rows() {
        let mut rng = fastrand::Rng::with_seed(4);
        let (mut seen, mut others, mut without) = (HashSet::new(), 0, 0);
        for round in 0..16 * TYPES.len() {
            let column_type = TYPES[round % TYPES.len()];
            let column = random_column(&mut rng, column_type, [1, 1_024, 3_000, 9_000][round / TYPES.len() % 4]);
            let effort = if rng.bool() { Effort::Fresh } else { Effort::Sealed };
            let block = encode(column_type, &column, 0, column.len(), effort);
            for as_floats in [false, true] {
                let Some(mut digits) = block.digits(as_floats).unwrap() else { continue };
                seen.insert(format!("{:?} {as_floats}", block.physical));
                for i in 0..block.rows.div_ceil(VECTOR_ROWS) {
                    if !digits.has(i) {
                        without += 1;
                        continue;
                    }
                    let found = digits.vector(i);
                    others += found.others.len();
                    let found = plainly(&found, as_floats);
                    let expected: Vec<u64> = if as_floats {
                        block.floats().unwrap().vector(i).0.iter().map(|v| v.to_bits()).collect()
                    } else {
                        block.ints().unwrap().vector(i).0.iter().map(|v| v.cast_unsigned()).collect()
                    };
                    assert_eq!(found, expected, "vector {i} of {column_type:?}");
                }
            }
        }
        for of in ["I8 true", "I16 false", "I32 true", "I64 false", "F64 true"] {
            assert!(seen.contains(of), "{seen:?}");
        }
        assert!(others > 0 && without > 0, "{others} others, {without} without");
    }
}
