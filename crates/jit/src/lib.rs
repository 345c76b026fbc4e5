//! Compiles programs of [`tidalite_kernels::program`] to machine code.
//!
//! A whole test is one loop, so that no number passes through memory between two steps. The program is the reference
//! implementation.
//!
//! Input: a finished program. Output: [`Compiled`], which is run like the program and returns the same rows. The
//! program itself is used for steps that may fail for a row, for steps without an instruction for two lanes
//! (remainders, quotients of integers), and on processors that are not tested.
//!
//! Reading order: [`stages`] splits a program at the steps that remove rows, [`emit`] generates the loop of a stage,
//! [`code`] holds the memory of the loops and calls them. All unsafe code is in [`code`].
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

mod code;
mod emit;
mod stages;

use code::{COLUMNS_MAX, Code};
use stages::Stage;
use tidalite_kernels::Mask;
use tidalite_kernels::program::{Columns, Program, Room, Step, Stopped, Unread};

/// Smallest number of calculating or comparing steps. With fewer steps, unpacking the columns takes most of the time:
/// compiling the comparison of a sum of two columns with a constant saves a tenth.
const STEPS_MIN: usize = 3;

#[derive(Debug)]
pub struct Compiled {
    /// Runs vectors whose rows do not fill whole bytes.
    program: Program,
    stages: Vec<Stage>,
    code: Code,
}

/// Returns true if the program is long enough for compiled code to be faster by at least a fifth.
#[must_use]
pub fn is_worth_compiling(program: &Program) -> bool {
    let is_work = |step: &&Step| step.kind().is_some() || matches!(step, Step::Compare(..));
    program.steps().iter().filter(is_work).count() >= STEPS_MIN && emit::is_known(program)
}

impl Compiled {
    /// Compiles a program, which takes some tenths of a millisecond; `None` if it cannot be compiled on this machine.
    #[must_use]
    pub fn of(program: &Program) -> Option<Compiled> {
        if !emit::is_known(program) || program.columns().len() > COLUMNS_MAX || !is_tested_processor() {
            return None;
        }
        let stages = stages::of(program)?;
        let code = Code::of(program, &stages)?;
        Some(Compiled { program: program.clone(), stages, code })
    }

    /// Runs the program like [`Program::run`], with the same requirements on `columns` and `room`.
    ///
    /// # Errors
    /// Fails if a column cannot be read.
    ///
    /// # Panics
    /// Panics if columns are shorter than `rows`.
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

/// Returns true if the processor has instructions for rounding and comparing lanes of doubles and 64-bit integers.
fn is_tested_processor() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("sse4.2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(test)]
mod tests;
