//! The SELECT list: expressions with their names, and `*`.

use super::names::{folded, folded_parts, table_reference, unknown_column};
use super::scope::{Aliases, Place, ScopeColumn};
use super::{Binder, Result};
use crate::Error;
use datafusion::arrow::array::StringArray;
use datafusion::arrow::compute::kernels::comparison::nilike;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, TableReference};
use datafusion::logical_expr::{Expr, ExprSchemable, lit};
use std::collections::{HashMap, HashSet};
use tidalite_sql::ast::{self, ExprKind, ObjectName, Projection, Select, SelectItem, Wildcard, WildcardChange};
use tidalite_types::{ErrorKind, SqlState};

/// An item of the list, and the origin of its name.
struct Item {
    expr: Expr,
    label: Label,
}

enum Label {
    /// AS name.
    Alias(String),
    /// The name of the column; the table, if it is written.
    Column { table: Option<String> },
    /// A name made from the expression.
    Computed(String),
    /// A column of `*`.
    Star,
}

impl Binder<'_> {
    /// Binds the list; each expression has a name, and no name occurs twice.
    pub(super) fn items(&self, select: &Select, place: Place) -> Result<Vec<Expr>> {
        self.items_of(select, place, place)
    }

    /// Binds the list; `stars` has the columns of `*`.
    pub(super) fn items_of(&self, select: &Select, place: Place, stars: Place) -> Result<Vec<Expr>> {
        let mut items = Vec::new();
        let Projection::Items(list) = &select.projection else {
            let all = Wildcard { of: None, changes: Vec::new(), span: select.span };
            self.wildcard(&all, stars, &mut items)?;
            return Ok(named(items));
        };
        let mut aliases: Vec<(String, Expr)> = Vec::new();
        for item in list {
            match item {
                SelectItem::Wildcard(wildcard) => self.wildcard(wildcard, stars, &mut items)?,
                SelectItem::Expr { expr, alias } => {
                    let place = Place { aliases: Aliases { list: &aliases, come_first: false }, ..place };
                    let bound = self.expr(expr, place)?;
                    let label = match alias {
                        Some(alias) => Label::Alias(folded(alias)),
                        None => match (&expr.kind, &bound) {
                            (ExprKind::Column(name), Expr::Column(column))
                                if name.parts.last().is_some_and(|part| folded(part) == column.name) =>
                            {
                                Label::Column { table: table_of(name) }
                            }
                            _ => Label::Computed(self.label(expr)),
                        },
                    };
                    if let Label::Alias(name) = &label {
                        aliases.push((name.clone(), bound.clone()));
                    }
                    items.push(Item { expr: bound, label });
                }
            }
        }
        Ok(named(items))
    }

    /// Expands `(value).*`: the parts of a struct.
    fn parts_of_struct(&self, of: &ast::Expr, place: Place, items: &mut Vec<Item>) -> Result<()> {
        let value = self.expr(of, place)?;
        let DataType::Struct(fields) = value.get_type(&place.scope.schema)? else {
            let error = Error::invalid("only a struct has parts: (value).*");
            return Err(error.at(of.span.start as usize).into());
        };
        for field in &fields {
            let expr = self.scalar_call("get_field", vec![value.clone(), lit(field.name().as_str())])?;
            items.push(Item { expr, label: Label::Computed(field.name().clone()) });
        }
        Ok(())
    }

    /// Expands `*` and `t.*`.
    fn wildcard(&self, wildcard: &Wildcard, place: Place, items: &mut Vec<Item>) -> Result<()> {
        if let Some(of) = wildcard.of.as_deref().filter(|of| !matches!(of.kind, ExprKind::Column(_))) {
            return self.parts_of_struct(of, place, items);
        }
        let columns = star_columns(wildcard, place)?;
        let mut changes = Changes::default();
        for change in &wildcard.changes {
            match change {
                WildcardChange::Exclude(names) => {
                    names.iter().try_for_each(|name| changes.exclude(name, &columns, place))?;
                }
                WildcardChange::Replace(list) => {
                    for (expr, name) in list {
                        changes.replaced.insert(folded(name), self.expr(expr, place)?);
                    }
                }
                WildcardChange::Rename(list) => {
                    changes.renamed.extend(list.iter().map(|(column, name)| (folded(column), folded(name))));
                }
                WildcardChange::Ilike(pattern) => changes.exclude_unlike(pattern, &columns)?,
            }
        }
        for column in columns {
            items.extend(changes.item(column));
        }
        Ok(())
    }
}

/// Returns the table that a column is written with.
fn table_of(name: &ObjectName) -> Option<String> {
    let parts = folded_parts(name);
    (parts.len() > 1).then(|| parts[..parts.len() - 1].join("."))
}

fn star_columns<'p>(wildcard: &Wildcard, place: Place<'p>) -> Result<Vec<&'p ScopeColumn>> {
    let Some(of) = &wildcard.of else {
        if place.scope.schema.fields().is_empty() {
            let error = Error::invalid("SELECT * with no tables specified is not valid");
            return Err(error.at(wildcard.span.start as usize).into());
        }
        return Ok(place.scope.columns.iter().filter(|column| column.visibility.is_bare()).collect());
    };
    let ExprKind::Column(name) = &of.kind else {
        return Err(Error::internal("the parts of a struct are not columns").at(wildcard.span.start as usize).into());
    };
    let parts = folded_parts(name);
    if let Some(table) = table_reference(&parts) {
        let columns: Vec<_> = place.scope.columns.iter().filter(|column| column.is_of(&table)).collect();
        if !columns.is_empty() {
            return Ok(columns);
        }
    }
    let table = parts.last().cloned().unwrap_or_default();
    let error = Error::new(ErrorKind::Invalid, format!("missing FROM-clause entry for table \"{table}\""));
    Err(error.about(table).with_code(SqlState::UNDEFINED_TABLE).at(name.span.start as usize).into())
}

/// The modifiers of `*`.
#[derive(Default)]
struct Changes {
    /// Excluded columns: their table, if one is named, and their name.
    excluded: Vec<(Option<TableReference>, String)>,
    replaced: HashMap<String, Expr>,
    renamed: HashMap<String, String>,
}

impl Changes {
    fn exclude(&mut self, name: &ObjectName, columns: &[&ScopeColumn], place: Place) -> Result<()> {
        let mut parts = folded_parts(name);
        let column = parts.pop().unwrap_or_default();
        self.excluded.push((table_reference(&parts), column.clone()));
        if columns.iter().any(|known| self.excludes(known)) {
            return Ok(());
        }
        Err(unknown_column(&column, name.span, place.scope))
    }

    /// Excludes the columns whose names do not match a pattern of ILIKE.
    fn exclude_unlike(&mut self, pattern: &str, columns: &[&ScopeColumn]) -> Result<()> {
        let names: StringArray = columns.iter().map(|column| Some(column.name.as_str())).collect();
        let unlike = nilike(&names, &StringArray::new_scalar(pattern)).map_err(DataFusionError::from)?;
        let columns = columns.iter().zip(unlike.iter()).filter(|(_, is_unlike)| *is_unlike == Some(true));
        self.excluded.extend(columns.map(|(column, _)| (None, column.name.clone())));
        Ok(())
    }

    fn excludes(&self, column: &ScopeColumn) -> bool {
        self.excluded.iter().any(|(table, name)| {
            *name == column.name
                && table.as_ref().is_none_or(|table| column.relation.as_ref().is_some_and(|own| table.resolved_eq(own)))
        })
    }

    fn item(&self, column: &ScopeColumn) -> Option<Item> {
        if self.excludes(column) {
            return None;
        }
        let value = self.replaced.get(&column.name);
        let expr = value.unwrap_or(&column.value).clone();
        let name = self.renamed.get(&column.name).unwrap_or(&column.name);
        let is_plain = matches!(&expr, Expr::Column(own) if own.name == *name) && value.is_none();
        let label = if is_plain { Label::Star } else { Label::Alias(name.clone()) };
        Some(Item { expr, label })
    }
}

/// Gives each item its name. A name that occurs again gets a number, as in QuestDB: `n`, `n1`.
fn named(items: Vec<Item>) -> Vec<Expr> {
    let mut names = Names::of(&items);
    items.into_iter().map(|item| names.name(item)).collect()
}

struct Names {
    /// The names of the columns of `*`.
    of_star: HashSet<String>,
    star_columns: HashSet<Expr>,
    /// The columns of `*` that have their name.
    stars_given: HashSet<Expr>,
    /// Names that were written, and names given here.
    taken: HashSet<String>,
    /// The number of items of each name so far.
    seen: HashMap<String, usize>,
}

impl Names {
    fn of(items: &[Item]) -> Names {
        let stars = || items.iter().filter(|item| matches!(item.label, Label::Star));
        let written = items.iter().filter_map(|item| match &item.label {
            Label::Alias(name) => Some(name.clone()),
            Label::Column { table: None } => Some(item.expr.qualified_name().1),
            _ => None,
        });
        Names {
            of_star: stars().map(|item| item.expr.qualified_name().1).collect(),
            star_columns: stars().map(|item| item.expr.clone()).collect(),
            stars_given: HashSet::new(),
            taken: written.collect(),
            seen: HashMap::new(),
        }
    }

    fn name(&mut self, Item { expr, label }: Item) -> Expr {
        let (key, base) = match &label {
            Label::Star => return self.star(expr),
            Label::Alias(name) | Label::Computed(name) => (name.clone(), name.clone()),
            Label::Column { table } => {
                let (_, name) = expr.qualified_name();
                (table.as_ref().map_or_else(|| name.clone(), |table| format!("{table}.{name}")), name)
            }
        };
        let is_of_star = self.star_columns.contains(&expr);
        let count = self.seen.entry(key).or_insert(usize::from(is_of_star && matches!(label, Label::Column { .. })));
        *count += 1;
        let count = *count;
        let keeps_name = match &label {
            Label::Alias(name) => !self.of_star.contains(name),
            Label::Column { table } => table.is_none() || !self.taken.contains(&base),
            _ => !self.of_star.contains(&base) && !self.taken.contains(&base),
        };
        let name = if keeps_name && count == 1 { base } else { self.numbered(&base, count.saturating_sub(1).max(1)) };
        self.taken.insert(name.clone());
        match &expr {
            Expr::Column(column) if column.name == name => expr,
            _ => expr.alias(name),
        }
    }

    /// Names a column of `*`; the same column of another `*` gets a number.
    fn star(&mut self, expr: Expr) -> Expr {
        if self.stars_given.insert(expr.clone()) {
            return expr;
        }
        let name = self.numbered(&expr.qualified_name().1, 1);
        self.taken.insert(name.clone());
        expr.alias(name)
    }

    /// Returns the first name with a number from `first` on that is free.
    fn numbered(&self, name: &str, first: usize) -> String {
        let mut number = first;
        loop {
            let own = format!("{name}{number}");
            if !self.taken.contains(&own) {
                return own;
            }
            number += 1;
        }
    }
}
