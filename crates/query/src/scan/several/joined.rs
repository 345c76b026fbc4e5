//! Decides which comparisons are computed together: those of one list that read a column in common, so that it is
//! unpacked once.
//!
//! Input: the conditions on rows. Output: the same conditions as a tree whose leaves are predicates on one column and
//! programs. A comparison that may fail (overflow) is computed last in its program, and only for the rows that satisfy
//! the other members of an AND.

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
        // OR would compute a member that may fail for rows that satisfy another one.
        let is_together = match asked {
            Asked::Compared(..) | Asked::Present(_) => is_all || !asked.may_fail(),
            _ => !asked.may_fail(),
        };
        if !asked.is_computed(&mut columns) || !is_together {
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
    out.extend(groups.into_iter().flat_map(|(_, members)| together(members, is_all)));
    out
}

/// Returns the members of a list that share columns as one program.
///
/// Members that may fail stay apart from a program that is worth compiling, because no program with them is compiled.
fn together(mut members: Vec<Asked>, is_all: bool) -> Vec<Joined> {
    let failing: Vec<Asked> = members.extract_if(.., |member| member.may_fail()).collect();
    if failing.is_empty() || members.is_empty() {
        members.extend(failing);
        return match members.len() {
            1 => members.into_iter().map(one).collect(),
            _ => vec![Joined::Computed(computed(members, is_all))],
        };
    }
    let program = computed(members.clone(), is_all);
    if program.is_worth_compiling() {
        return [Joined::Computed(program)].into_iter().chain(failing.into_iter().map(one)).collect();
    }
    members.extend(failing);
    vec![Joined::Computed(computed(members, is_all))]
}

impl Asked {
    /// Returns true if all of it is comparisons of numbers; lists their columns.
    fn is_computed(&self, columns: &mut Vec<ColumnId>) -> bool {
        match self {
            Asked::One(_) => false,
            Asked::Compared(_, a, b) => {
                a.columns(columns);
                b.columns(columns);
                true
            }
            Asked::Present(a) => {
                a.columns(columns);
                true
            }
            Asked::All(list) | Asked::Any(list) => list.iter().all(|asked| asked.is_computed(columns)),
            Asked::Not(inner) => inner.is_computed(columns),
        }
    }

    /// Returns true if a row may be an error.
    fn may_fail(&self) -> bool {
        match self {
            Asked::One(_) => false,
            Asked::Compared(_, a, b) => a.may_fail() || b.may_fail(),
            Asked::Present(a) => a.may_fail(),
            Asked::All(list) | Asked::Any(list) => list.iter().any(Asked::may_fail),
            Asked::Not(inner) => inner.may_fail(),
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
