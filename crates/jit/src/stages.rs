//! A program cut where rows drop out: each part ends with a test.
//!
//! In: a program. Out: its tests in the order they are asked, the last that of the program, each with the columns it is
//! made of. A test is computed as a whole, also what an earlier one had computed: columns that only later tests read are
//! not even loaded where no row is left.

use tidalite_kernels::program::{Number, Program, Step, Test};

#[derive(Debug)]
pub(crate) struct Stage {
    pub test: Test,
    /// Those that its code reads, values or which of them are there.
    pub columns: Vec<usize>,
}

/// `None` of a program that asks nothing.
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
