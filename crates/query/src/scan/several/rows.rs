//! Which rows of a piece a program is true of.
//!
//! In: the rows that are still wanted. Out: those of them that remain. Where they are many, vectors that have one are
//! unpacked and the program is run over them; where they are few, only they are taken out of their blocks, and the
//! program is run over these. A column is opened when the first vector reaches a step that reads it. Of staging, columns
//! are read where they lie. Over many rows a long program is compiled ([`Tier`]), which gives the same.

use super::tier::Tier;
use crate::scan::prune::Piece;
use crate::{Error, Result};
use datafusion::arrow::error::ArrowError;
use datafusion::common::DataFusionError;
use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use tidalite_kernels::program::{Arithmetic, Columns, Failure, Guarded, Kind, Program, Room, Stopped, Unread};
use tidalite_kernels::{Mask, count_picked, keep_bits};
use tidalite_storage::segment::{OpenBlock, Selection, Vectors, to_column};
use tidalite_storage::{Segment, TableSnapshot};
use tidalite_types::{Column, ColumnId, VECTOR_ROWS, Values};

const WORDS: usize = VECTOR_ROWS / 64;
/// Where at most one row in so many is wanted, these are taken out of their vectors first.
const SPARSE: usize = 32;
const ZERO_INTS: [i64; VECTOR_ROWS] = [0; VECTOR_ROWS];
const ZERO_FLOATS: [f64; VECTOR_ROWS] = [0.0; VECTOR_ROWS];
const NO_ROWS: Mask = [0; WORDS];

thread_local! {
    static ROOM: RefCell<Room> = RefCell::new(Room::new());
}

/// A program and the columns that it reads, in its order.
#[derive(Debug)]
pub(in crate::scan) struct Computed {
    columns: Vec<ColumnId>,
    program: Program,
    tier: Tier,
}

impl Computed {
    pub(super) fn new(columns: Vec<ColumnId>, program: Program) -> Computed {
        let tier = Tier::of(&program, false);
        Computed { columns, program, tier }
    }

    /// The same, which may become machine code.
    pub fn compiling(self) -> Computed {
        Computed { tier: Tier::of(&self.program, true), ..self }
    }

    /// Whether it has become machine code.
    pub fn is_compiled(&self) -> bool {
        self.tier.code().is_some()
    }

    /// Returns true if compiled code would be faster.
    pub(super) fn is_worth_compiling(&self) -> bool {
        tidalite_jit::is_worth_compiling(&self.program)
    }

    /// Whether a row can be an error.
    pub fn may_fail(&self) -> bool {
        self.program.may_fail()
    }

    /// What looking at a row takes, compared with an integer that is compared as it is packed.
    pub fn cost(&self) -> f64 {
        4.0 * self.columns.len() as f64 + self.program.len() as f64
    }

    /// Clears the rows of `mask` of which it is not true.
    pub fn retain(&self, snapshot: &TableSnapshot, piece: Piece, mask: &mut [u64]) -> Result<()> {
        match piece {
            Piece::Block { segment, block } => {
                let segment = &snapshot.segments[segment];
                let rows = segment.block_rows(block);
                let retained = if count_picked(mask) * SPARSE <= rows {
                    self.retain_taken(segment, block, mask)
                } else {
                    let opened: Vec<_> = self.columns.iter().map(|_| OnceCell::new()).collect();
                    let mut columns = Opened {
                        segment,
                        block,
                        of: self,
                        mask: Cow::Owned(mask.to_vec()),
                        opened: &opened,
                        vectors: self.columns.iter().map(|_| None).collect(),
                        at: 0,
                        error: None,
                    };
                    self.over_vectors(&mut columns, rows, mask).map_err(|stopped| columns.why(stopped))
                };
                retained.map_err(|failed| match failed {
                    Why::Storage(error) => snapshot.named(error).into(),
                    Why::Row(failure) => error_of(failure),
                })
            }
            Piece::Run { run, from, rows } => {
                let run = &snapshot.runs[run];
                let columns = self.columns.iter().map(|id| run.column(*id).map(|column| Cow::Borrowed(&**column)));
                let mut columns = InMemory::new(columns.collect(), from);
                self.over_vectors(&mut columns, rows, mask).map_err(|stopped| match stopped {
                    Stopped::Failed(failure) => error_of(failure),
                    Stopped::Unread => Error::internal("a staged column that cannot be read"),
                })
            }
        }
    }

    fn over_vectors<C: Columns + AtVector>(
        &self,
        columns: &mut C,
        rows: usize,
        mask: &mut [u64],
    ) -> Result<(), Stopped> {
        let code = self.tier.code();
        let mut interpreted = 0;
        let done = ROOM.with_borrow_mut(|room| {
            for (i, words) in mask.chunks_mut(WORDS).enumerate() {
                if words.iter().all(|word| *word == 0) {
                    continue;
                }
                let mut wanted = NO_ROWS;
                wanted[..words.len()].copy_from_slice(words);
                columns.at(i);
                let rows = (rows - i * VECTOR_ROWS).min(VECTOR_ROWS);
                let found = match code {
                    Some(code) => code.run(columns, rows, &wanted, room)?,
                    None => {
                        interpreted += rows;
                        self.program.run(columns, rows, &wanted, room)?
                    }
                };
                words.copy_from_slice(&found[..words.len()]);
            }
            Ok(())
        });
        self.tier.ran(&self.program, interpreted);
        done
    }

    /// Of few rows.
    fn retain_taken(&self, segment: &Segment, block: usize, mask: &mut [u64]) -> Result<(), Why> {
        let selection = Selection::new(mask.to_vec());
        let rows = selection.rows();
        let mut columns = Taken {
            segment,
            block,
            of: self,
            selection: &selection,
            rows: InMemory::new(self.columns.iter().map(|_| None).collect(), 0),
            is_read: vec![false; self.columns.len()],
            error: None,
        };
        let mut kept = tidalite_types::Bitmap::filled(rows, true).into_words();
        self.over_vectors(&mut columns, rows, &mut kept).map_err(|stopped| columns.why(stopped))?;
        keep_bits(mask, &kept);
        Ok(())
    }
}

/// Why a block was not asked to its end.
enum Why {
    Storage(tidalite_storage::Error),
    Row(Failure),
}

fn why(error: Option<tidalite_storage::Error>, stopped: Stopped) -> Why {
    match (stopped, error) {
        (Stopped::Failed(failure), _) => Why::Row(failure),
        (Stopped::Unread, Some(error)) => Why::Storage(error),
        (Stopped::Unread, None) => unreachable!("what cannot be read says why"),
    }
}

/// As the planner's operators say it.
fn error_of(failure: Failure) -> Error {
    let error = match failure {
        Failure::DivisionByZero => ArrowError::DivideByZero,
        Failure::Overflow(of, a, b) => {
            let sign = match of {
                Guarded::Plus | Guarded::Moved(..) | Guarded::Narrow(Arithmetic::Plus, _) => '+',
                Guarded::Times | Guarded::Narrow(Arithmetic::Times, _) => '*',
                Guarded::Minus | Guarded::Narrow(..) => '-',
                Guarded::Over(_) => '/',
                Guarded::Modulo => '%',
            };
            ArrowError::ArithmeticOverflow(format!("Overflow happened on: {a} {sign} {b}"))
        }
        Failure::OutOfRange => ArrowError::ComputeError("Timestamp out of range".to_owned()),
        Failure::Magnitude(bits, of) => ArrowError::ComputeError(format!("Int{bits}Array overflow on abs({of})")),
    };
    DataFusionError::ArrowError(Box::new(error), None).into()
}

/// Columns of which one vector after the other is looked at.
trait AtVector {
    fn at(&mut self, i: usize);
}

/// A block's columns, vector by vector.
struct Opened<'a> {
    segment: &'a Segment,
    block: usize,
    of: &'a Computed,
    /// The rows that were wanted.
    mask: Cow<'a, [u64]>,
    /// Outside of it, since `vectors` borrow from there. `None` of a column that the segment does not have.
    opened: &'a [OnceCell<Option<OpenBlock<'a>>>],
    vectors: Vec<Option<Numbers<'a>>>,
    at: usize,
    error: Option<tidalite_storage::Error>,
}

enum Numbers<'a> {
    Nulls,
    Ints(Vectors<'a, i64>),
    Codes(Vectors<'a, u32>, Vec<i64>),
    Floats(Vectors<'a, f64>),
}

impl<'a> Opened<'a> {
    fn open(&mut self, column: usize) -> tidalite_storage::Result<Numbers<'a>> {
        let cell = &self.opened[column];
        if cell.get().is_none() {
            let id = self.of.columns[column];
            let opened = match self.segment.zone(id, self.block)? {
                Some(zone) if (zone.null_count as usize) < self.segment.block_rows(self.block) => {
                    self.segment.open_block_among(id, self.block, &self.mask)?
                }
                _ => None,
            };
            // It was not there a moment ago.
            let _ = cell.set(opened);
        }
        let Some(Some(block)) = cell.get() else { return Ok(Numbers::Nulls) };
        Ok(match self.of.program.columns()[column] {
            Kind::Float => Numbers::Floats(block.floats()?),
            Kind::Int if block.is_of_codes() => Numbers::Codes(block.codes()?, Vec::new()),
            Kind::Int => Numbers::Ints(block.ints()?),
        })
    }

    fn why(self, stopped: Stopped) -> Why {
        why(self.error, stopped)
    }
}

impl AtVector for Opened<'_> {
    fn at(&mut self, i: usize) {
        self.at = i;
    }
}

impl Columns for Opened<'_> {
    fn load(&mut self, column: usize) -> Result<(), Unread> {
        if self.vectors[column].is_none() {
            match self.open(column) {
                Ok(numbers) => self.vectors[column] = Some(numbers),
                Err(error) => {
                    self.error = Some(error);
                    return Err(Unread);
                }
            }
        }
        match &mut self.vectors[column] {
            Some(Numbers::Ints(vectors)) => vectors.load(self.at),
            Some(Numbers::Floats(vectors)) => vectors.load(self.at),
            Some(Numbers::Codes(vectors, wide)) => {
                vectors.load(self.at);
                wide.clear();
                wide.extend(vectors.values().iter().map(|code| i64::from(*code)));
            }
            Some(Numbers::Nulls) | None => {}
        }
        Ok(())
    }

    fn ints(&self, column: usize) -> &[i64] {
        match &self.vectors[column] {
            Some(Numbers::Ints(vectors)) => vectors.values(),
            Some(Numbers::Codes(_, wide)) => wide,
            _ => &ZERO_INTS,
        }
    }

    fn floats(&self, column: usize) -> &[f64] {
        match &self.vectors[column] {
            Some(Numbers::Floats(vectors)) => vectors.values(),
            _ => &ZERO_FLOATS,
        }
    }

    fn valid(&self, column: usize) -> Option<&[u64]> {
        match &self.vectors[column] {
            Some(Numbers::Ints(vectors)) => vectors.valid(self.at),
            Some(Numbers::Codes(vectors, _)) => vectors.valid(self.at),
            Some(Numbers::Floats(vectors)) => vectors.valid(self.at),
            Some(Numbers::Nulls) | None => Some(&NO_ROWS),
        }
    }
}

/// Columns in memory, from a row on that is a multiple of 64.
struct InMemory<'a> {
    /// `None` of one without values.
    columns: Vec<Option<Cow<'a, Column>>>,
    from: usize,
    /// The vector's numbers, where they are of another width.
    wide: Vec<(Vec<i64>, Vec<f64>)>,
    at: usize,
}

impl<'a> InMemory<'a> {
    fn new(columns: Vec<Option<Cow<'a, Column>>>, from: usize) -> InMemory<'a> {
        let wide = columns.iter().map(|_| (Vec::new(), Vec::new())).collect();
        InMemory { columns, from, wide, at: 0 }
    }

    fn part<'v, T>(&self, values: &'v [T]) -> &'v [T] {
        &values[self.at..values.len().min(self.at + VECTOR_ROWS)]
    }
}

impl AtVector for InMemory<'_> {
    fn at(&mut self, i: usize) {
        self.at = self.from + i * VECTOR_ROWS;
    }
}

impl Columns for InMemory<'_> {
    fn load(&mut self, column: usize) -> Result<(), Unread> {
        let (mut ints, mut floats) = std::mem::take(&mut self.wide[column]);
        ints.clear();
        floats.clear();
        if let Some(values) = self.columns[column].as_ref().map(|column| &column.values) {
            match values {
                Values::I8(v) => ints.extend(self.part(v).iter().map(|v| i64::from(*v))),
                Values::I16(v) => ints.extend(self.part(v).iter().map(|v| i64::from(*v))),
                Values::I32(v) => ints.extend(self.part(v).iter().map(|v| i64::from(*v))),
                Values::U32(v) => ints.extend(self.part(v).iter().map(|v| i64::from(*v))),
                Values::F32(v) => floats.extend(self.part(v).iter().map(|v| f64::from(*v))),
                _ => {}
            }
        }
        self.wide[column] = (ints, floats);
        Ok(())
    }

    fn ints(&self, column: usize) -> &[i64] {
        match self.columns[column].as_ref().map(|column| &column.values) {
            Some(Values::I64(values)) => self.part(values),
            Some(Values::I8(_) | Values::I16(_) | Values::I32(_) | Values::U32(_)) => &self.wide[column].0,
            _ => &ZERO_INTS,
        }
    }

    fn floats(&self, column: usize) -> &[f64] {
        match self.columns[column].as_ref().map(|column| &column.values) {
            Some(Values::F64(values)) => self.part(values),
            Some(Values::F32(_)) => &self.wide[column].1,
            _ => &ZERO_FLOATS,
        }
    }

    fn valid(&self, column: usize) -> Option<&[u64]> {
        match &self.columns[column] {
            Some(column) => column.validity.as_ref().map(|valid| &valid.words()[self.at / 64..]),
            None => Some(&NO_ROWS),
        }
    }
}

/// Some rows of a block's columns.
struct Taken<'a> {
    segment: &'a Segment,
    block: usize,
    of: &'a Computed,
    selection: &'a Selection,
    rows: InMemory<'a>,
    is_read: Vec<bool>,
    error: Option<tidalite_storage::Error>,
}

impl Taken<'_> {
    fn why(self, stopped: Stopped) -> Why {
        why(self.error, stopped)
    }
}

impl AtVector for Taken<'_> {
    fn at(&mut self, i: usize) {
        self.rows.at(i);
    }
}

impl Columns for Taken<'_> {
    fn load(&mut self, column: usize) -> Result<(), Unread> {
        if !self.is_read[column] {
            match self.segment.take(self.of.columns[column], self.block, self.selection) {
                Ok(block) => self.rows.columns[column] = block.map(|block| Cow::Owned(to_column(&block))),
                Err(error) => {
                    self.error = Some(error);
                    return Err(Unread);
                }
            }
            self.is_read[column] = true;
        }
        self.rows.load(column)
    }

    fn ints(&self, column: usize) -> &[i64] {
        self.rows.ints(column)
    }

    fn floats(&self, column: usize) -> &[f64] {
        self.rows.floats(column)
    }

    fn valid(&self, column: usize) -> Option<&[u64]> {
        self.rows.valid(column)
    }
}
