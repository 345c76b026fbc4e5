//! Splits a program at the steps that remove rows; each stage ends with a test.
//!
//! Input: a program. Output: its tests in the order of evaluation, the program's result last, each with the columns
//! that it depends on. Each test is computed completely, including steps that an earlier test computed, so that columns
//! which only later tests read are not loaded if no row is left.

use tidalite_kernels::program::{Number, Program, Step, Test};

#[derive(Debug)]
pub(crate) struct Stage {
    pub test: Test,
    /// Columns whose values or validity the code reads.
    pub columns: Vec<usize>,
}

/// Returns the stages; `None` for a program without a result test.
pub(crate) fn of(program: &Program) -> Option<Vec<Stage>> {
    let among = program.steps().iter().filter_map(|step| match step {
        Step::Among(test) => Some(*test),
        _ => None,
    });
    let tests = among.chain([program.asked()?]);
    Some(tests.map(|test| Stage::of(program, test)).collect())
}

impl Stage {
    fn of(program: &Program, test: Test) -> Stage {
        let mut columns = Vec::new();
        let mut open = vec![test.step()];
        let mut seen = vec![false; program.steps().len()];
        while let Some(step) = open.pop() {
            if std::mem::replace(&mut seen[step], true) {
                continue;
            }
            columns.extend(program.columns_of(step));
            let of = &program.steps()[step];
            open.extend(of.numbers().iter().filter_map(|number| match number {
                Number::Step(step, _) => Some(*step),
                _ => None,
            }));
            match of {
                Step::Both(a, b) | Step::Either(a, b) => open.extend([a.step(), b.step()]),
                Step::Not(a) => open.push(a.step()),
                _ => {}
            }
        }
        columns.sort_unstable();
        columns.dedup();
        Stage { test, columns }
    }
}
