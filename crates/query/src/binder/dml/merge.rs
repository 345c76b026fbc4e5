//! MERGE: an UPDATE … FROM, a DELETE … USING or an INSERT … SELECT for each clause.
//!
//! A clause acts where its own condition is true and the conditions of earlier clauses of its kind are not. All clauses
//! read the tables as of the start of the statement.

use super::assignments::{assigned, value_or_default};
use super::{ChangedTable, Context, change, name, nodes, steps};
use crate::statement::{Compound, Delete, Insert, Statement, Step, Update};
use crate::{Error, Result};
use tidalite_sql::ast::{self, Expr, Literal, MergeAction, MergeClause, Relation, RelationKind, SelectItem, TableRef};

/// The tables of a MERGE.
struct Merge<'a> {
    target: ChangedTable,
    source: Relation,
    on: Expr,
    clauses: &'a [MergeClause],
}

pub(super) fn merge(merge: ast::Merge, context: &Context) -> Result<Statement> {
    if let Some(item) = merge.returning.first() {
        return Err(Error::invalid("RETURNING is not supported in MERGE").at(position_of(item)));
    }
    let mut steps = steps::named(merge.with, context)?;
    let target = ChangedTable::new(&merge.table, merge.alias.as_ref().map(|alias| &alias.name))?;
    let source = source(merge.source, &mut steps, context)?;
    let merge = Merge { target, source, on: merge.on, clauses: &merge.clauses };
    if let Some(pairs) = merge.once_each(context)? {
        steps.push(Step::OnceEach(pairs));
    }
    for (at, clause) in merge.clauses.iter().enumerate() {
        if let Some(statement) = merge.statement(at, clause, context)? {
            steps.push(Step::Counted(Box::new(statement)));
        }
    }
    Ok(Statement::Compound(Compound { tag: "MERGE", steps }))
}

fn position_of(item: &SelectItem) -> usize {
    let span = match item {
        SelectItem::Expr { expr, .. } => expr.span,
        SelectItem::Wildcard(wildcard) => wildcard.span,
    };
    span.start as usize
}

/// Returns the source relation. The rows of a sub-query are computed once, in a step of their own.
fn source(source: Relation, steps: &mut Vec<Step>, context: &Context) -> Result<Relation> {
    if !matches!(source.kind, RelationKind::Query { .. }) {
        return Ok(source);
    }
    let span = source.span;
    let Some(alias) = &source.alias else {
        return Err(Error::invalid("the sub-query of MERGE needs an alias").at(span.start as usize));
    };
    let name = alias.name.value.clone();
    let query = context.query(nodes::select(vec![nodes::star()], vec![nodes::table_ref(source)], None))?;
    let statement = Box::new(Statement::Query(query));
    steps.push(Step::Named { name: tidalite_types::schema::fold_name(&name), columns: Vec::new(), statement });
    Ok(nodes::table(&[&name], &name, span).relation)
}

impl Merge<'_> {
    fn source(&self) -> TableRef {
        nodes::table_ref(self.source.clone())
    }

    /// Returns the condition under which a clause acts, apart from the condition of ON.
    fn condition(&self, at: usize) -> Vec<Expr> {
        let clause = &self.clauses[at];
        let is_same = |other: &&MergeClause| other.matched == clause.matched && other.by_source == clause.by_source;
        let earlier = self.clauses[..at].iter().filter(is_same).map(|earlier| match &earlier.condition {
            Some(condition) => nodes::not_true(condition.clone()),
            None => nodes::literal(Literal::Boolean(false)),
        });
        clause.condition.iter().cloned().chain(earlier).collect()
    }

    /// Returns the pairs of rows on which a clause acts; a target row may occur once.
    fn once_each(&self, context: &Context) -> Result<Option<Delete>> {
        let acts = |clause: &MergeClause| clause.matched && !matches!(clause.action, MergeAction::Nothing);
        let acting = (0..self.clauses.len())
            .filter(|at| acts(&self.clauses[*at]))
            .map(|at| nodes::all(self.condition(at)).unwrap_or_else(|| nodes::literal(Literal::Boolean(true))));
        let Some(acts) = nodes::any(acting.collect()) else { return Ok(None) };
        let selection = nodes::all(vec![self.on.clone(), acts]);
        let query = change::rows(&self.target, vec![self.source()], selection, Vec::new(), None);
        let table = self.target.table.clone();
        Ok(Some(Delete { table, query: Some(context.query(query)?), returning: None }))
    }

    /// Returns the statement of a clause; `None` for DO NOTHING.
    fn statement(&self, at: usize, clause: &MergeClause, context: &Context) -> Result<Option<Statement>> {
        Ok(match &clause.action {
            MergeAction::Nothing => None,
            MergeAction::Delete => {
                let query = Some(context.query(self.changed(at, clause, Vec::new()))?);
                Some(Statement::Delete(Delete { table: self.target.table.clone(), query, returning: None }))
            }
            MergeAction::Update(assignments) => {
                let (columns, values) = assigned(assignments.clone(), &self.target)?;
                let query = context.query(self.changed(at, clause, values))?;
                let table = self.target.table.clone();
                Some(Statement::Update(Update { table, query, columns, returning: None }))
            }
            MergeAction::Insert { columns, values } => {
                Some(Statement::Insert(self.insert(at, columns, values, context)?))
            }
        })
    }

    /// Returns the query of the target rows that a clause changes.
    fn changed(&self, at: usize, clause: &MergeClause, values: Vec<Expr>) -> ast::Query {
        let others = if clause.by_source { Vec::new() } else { vec![self.source()] };
        let own = match clause.by_source {
            true => self.without(self.source()),
            false => self.on.clone(),
        };
        let conditions = std::iter::once(own).chain(self.condition(at)).collect();
        change::rows(&self.target, others, nodes::all(conditions), values, None)
    }

    /// Returns the condition that no row of `table` matches.
    fn without(&self, table: TableRef) -> Expr {
        let one = nodes::item(nodes::literal(Literal::Number("1".to_owned())), None);
        nodes::not_exists(nodes::select(vec![one], vec![table], Some(self.on.clone())))
    }

    fn insert(&self, at: usize, columns: &[ast::Ident], values: &[Expr], context: &Context) -> Result<Insert> {
        let items = match values {
            [] => vec![nodes::item(nodes::literal(Literal::Null), None)],
            values => values.iter().map(|value| nodes::item(value_or_default(value.clone()), None)).collect(),
        };
        let own = self.without(self.target.relation());
        let conditions = std::iter::once(own).chain(self.condition(at)).collect();
        let query = nodes::select(items, vec![self.source()], nodes::all(conditions));
        Ok(Insert {
            table: self.target.table.text.clone(),
            columns: columns.iter().map(name).collect(),
            query: context.query(query)?,
            table_position: self.target.table.position,
            alias: self.target.alias.clone(),
            conflict: None,
            returning: None,
            commit_rows: None,
        })
    }
}
