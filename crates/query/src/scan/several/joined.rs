//! Which comparisons are computed together: those of one list that read a column in common, so that it is unpacked once.
//!
//! In: what is asked of rows. Out: the same as a tree whose leaves are predicates on one column and programs. What may be
//! an error of a row is a program of its own, which is only asked of rows that others have left.

use super::Asked;
use super::rows::Computed;
use crate::scan::predicate::Predicate;
use tidalite_kernels::program::{Program, Test};
use tidalite_types::ColumnId;

pub(in crate::scan) enum Joined {
    One(Predicate),
    Computed(Computed),
    All(Vec<Joined>),
    Any(Vec<Joined>),
    Not(Box<Joined>),
}

/// What is asked by all of a list.
pub(in crate::scan) fn joined(all: Vec<Asked>) -> Vec<Joined> {
    list(super::flat(all, true), true)
}

fn one(asked: Asked) -> Joined {
    match asked {
        Asked::One(predicate) => Joined::One(predicate),
        Asked::All(of) => Joined::All(list(of, true)),
        Asked::Any(of) => Joined::Any(list(of, false)),
        Asked::Not(inner) => Joined::Not(Box::new(one(*inner))),
        asked => Joined::Computed(computed(vec![asked], true)),
    }
}

/// What several ask, of all or of any.
fn list(asked: Vec<Asked>, is_all: bool) -> Vec<Joined> {
    let mut out = Vec::new();
    let mut groups: Vec<(Vec<ColumnId>, Vec<Asked>)> = Vec::new();
    for asked in asked {
        let mut columns = Vec::new();
        if !asked.is_computed(&mut columns) {
            out.push(one(asked));
            continue;
        }
        // Groups that it has a column in common with are one from here on.
        let (mut own, mut members) = (columns, Vec::new());
        let is_shared = |columns: &[ColumnId], own: &[ColumnId]| columns.iter().any(|column| own.contains(column));
        let shared;
        (shared, groups) = groups.into_iter().partition(|(columns, _)| is_shared(columns, &own));
        for (columns, asked) in shared {
            own.extend(columns);
            members.extend(asked);
        }
        members.push(asked);
        groups.push((own, members));
    }
    out.extend(groups.into_iter().map(|(_, mut members)| match members.len() {
        1 => members.pop().map_or(Joined::All(Vec::new()), one),
        _ => Joined::Computed(computed(members, is_all)),
    }));
    out
}

impl Asked {
    /// Whether it is all comparisons of numbers that never fail; the columns of these are listed.
    fn is_computed(&self, columns: &mut Vec<ColumnId>) -> bool {
        match self {
            Asked::One(_) => false,
            Asked::Compared(_, a, b) => {
                a.columns(columns);
                b.columns(columns);
                !a.may_fail() && !b.may_fail()
            }
            Asked::Present(a) => {
                a.columns(columns);
                !a.may_fail()
            }
            Asked::All(list) | Asked::Any(list) => list.iter().all(|asked| asked.is_computed(columns)),
            Asked::Not(inner) => inner.is_computed(columns),
        }
    }

    fn build(&self, program: &mut Program, columns: &mut Vec<(ColumnId, tidalite_kernels::program::Number)>) -> Test {
        match self {
            Asked::Compared(comparison, a, b) => {
                let (a, b) = (a.build(program, columns), b.build(program, columns));
                program.compared(*comparison, a, b)
            }
            Asked::Present(a) => {
                let a = a.build(program, columns);
                program.present(a)
            }
            Asked::Not(inner) => {
                let inner = inner.build(program, columns);
                program.not(inner)
            }
            Asked::All(list) => {
                let tests: Vec<Test> = list.iter().map(|asked| asked.build(program, columns)).collect();
                tests.into_iter().reduce(|a, b| program.both(a, b)).unwrap_or_else(|| program.constant(true))
            }
            Asked::Any(list) => {
                let tests: Vec<Test> = list.iter().map(|asked| asked.build(program, columns)).collect();
                tests.into_iter().reduce(|a, b| program.either(a, b)).unwrap_or_else(|| program.constant(false))
            }
            // It is asked of encoded blocks: there is none among what is computed.
            Asked::One(_) => program.constant(true),
        }
    }
}

fn computed(asked: Vec<Asked>, is_all: bool) -> Computed {
    let (mut program, mut columns) = (Program::default(), Vec::new());
    let test = if is_all {
        let mut last = None;
        for asked in &asked {
            // Each is asked of the rows that those before have left.
            if let Some(last) = last {
                program.among(last);
            }
            last = Some(asked.build(&mut program, &mut columns));
        }
        last.unwrap_or_else(|| program.constant(true))
    } else {
        Asked::Any(asked).build(&mut program, &mut columns)
    };
    Computed::new(columns.into_iter().map(|(column, _)| column).collect(), program.asking(test))
}
