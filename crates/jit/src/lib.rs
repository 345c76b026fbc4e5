//! Programs of [`tidalite_kernels::program`] as machine code: one loop for a whole test, so that no number goes through
//! memory between two steps. The program itself is the plain twin that defines what comes out.
//!
//! In: a finished program. Out: [`Compiled`], which is run as the program is and gives the same rows. What may fail of a
//! row, what has no instruction of two lanes (remainders, quotients of integers), and processors that are not tested stay
//! with the program.
//!
//! Reading order: [`stages`] cuts a program where rows drop out, [`emit`] makes a loop of a stage, [`code`] has the memory
//! of the loops and calls them. All unsafe code is there.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod code;
mod emit;
mod stages;

use code::Code;
use stages::Stage;
use tidalite_kernels::Mask;
use tidalite_kernels::program::{Columns, Program, Room, Step, Stopped, Unread};

/// Programs of more columns are not compiled.
pub const COLUMNS_MAX: usize = 32;
/// Of fewer steps that calculate or compare, unpacking the columns takes most of the time: a sum of two beside a constant
/// gains a tenth.
const STEPS_MIN: usize = 3;

#[derive(Debug)]
pub struct Compiled {
    /// Of vectors whose rows do not fill whole bytes.
    program: Program,
    stages: Vec<Stage>,
    code: Code,
}

/// Whether a program is long enough to be faster when it is compiled, by a fifth or more.
#[must_use]
pub fn is_worth_compiling(program: &Program) -> bool {
    let is_work = |step: &&Step| step.kind().is_some() || matches!(step, Step::Compare(..));
    program.steps().iter().filter(is_work).count() >= STEPS_MIN && emit::is_known(program)
}

impl Compiled {
    /// Takes some tenths of a millisecond. `None` where it cannot be compiled here.
    #[must_use]
    pub fn of(program: &Program) -> Option<Compiled> {
        if !emit::is_known(program) || program.columns().len() > COLUMNS_MAX || !is_tested_processor() {
            return None;
        }
        let stages = stages::of(program)?;
        let code = Code::of(program, &stages)?;
        Some(Compiled { program: program.clone(), stages, code })
    }

    /// As [`Program::run`], of which it asks the same of columns and room.
    ///
    /// # Errors
    /// When a column cannot be read.
    ///
    /// # Panics
    /// When columns are shorter than `rows`.
    pub fn run(&self, columns: &mut dyn Columns, rows: usize, wanted: &Mask, room: &mut Room) -> Result<Mask, Stopped> {
        if !rows.is_multiple_of(emit::ROWS) {
            return self.program.run(columns, rows, wanted, room);
        }
        let mut loaded = [false; COLUMNS_MAX];
        let mut left = *wanted;
        for (at, stage) in self.stages.iter().enumerate() {
            if left.iter().all(|word| *word == 0) {
                break;
            }
            for column in &stage.columns {
                if !std::mem::replace(&mut loaded[*column], true) {
                    columns.load(*column).map_err(|Unread| Stopped::Unread)?;
                }
            }
            self.code.retain(at, columns, rows, &mut left);
        }
        Ok(left)
    }
}

/// Lanes of doubles and of integers of 64 bits, rounded and compared by instructions, are what is emitted.
fn is_tested_processor() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("sse4.2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests;
