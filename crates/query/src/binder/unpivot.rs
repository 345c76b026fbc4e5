//! UNPIVOT: columns become rows of a name and a value.

use super::from::aliased;
use super::names::folded;
use super::scope::{Env, Place, ScopeColumn, Source};
use super::{Binder, Result};
use crate::plan::{with_doubles, with_times};
use crate::{Error, door};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Column, DFSchema, ExprSchema, UnnestOptions};
use datafusion::functions_nested::make_array::make_array;
use datafusion::logical_expr::type_coercion::binary::type_union_resolution;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlanBuilder, cast, lit};
use std::collections::HashMap;
use tidalite_sql::ast::{Alias, Relation, Unpivot};

impl Binder<'_> {
    /// Binds `relation UNPIVOT (…)`.
    pub(super) fn unpivoted_relation(
        &self,
        relation: &Relation,
        unpivot: &Unpivot,
        alias: Option<&Alias>,
        env: &Env,
    ) -> Result<Source> {
        let source = self.relation(relation, env, None)?;
        let (mut names, mut values) = (Vec::new(), Vec::new());
        {
            let scope = source.scope(env.outer);
            let place = Place::new(&scope, env);
            for column in &unpivot.columns {
                let bound = self.expr(&column.expr, place)?;
                let Expr::Column(own) = &bound else {
                    let error = Error::invalid("UNPIVOT takes names of columns");
                    return Err(error.at(column.expr.span.start as usize).into());
                };
                let field = scope.schema.field_from_column(own)?;
                let spelled = door::spelling(field).unwrap_or(field.name()).to_owned();
                names.push(lit(column.alias.as_ref().map_or(spelled, |alias| alias.value.clone())));
                values.push(bound);
            }
        }
        let name_of = |name: &Option<_>, default: &str| name.as_ref().map_or_else(|| default.to_owned(), folded);
        let (name, value) = (name_of(&unpivot.name, "name"), name_of(&unpivot.value, "value"));
        let kept = rest(&source.columns, &values);
        let (values, metadata) = of_one_type(values, source.plan.schema(), unpivot)?;
        let lists = [make_array(names).alias(&name), make_array(values).alias(&value)];
        let columns = kept.iter().cloned().chain(lists);
        let unnested = [&name, &value].map(Column::new_unqualified).to_vec();
        let plan = LogicalPlanBuilder::from(source.plan).project(columns)?;
        let plan = plan.unnest_columns_with_options(unnested, UnnestOptions::default())?;
        let plan = match unpivot.includes_nulls {
            true => plan,
            false => plan.filter(Expr::Column(Column::new_unqualified(&value)).is_not_null())?,
        };
        let plan = match metadata {
            Some(metadata) => {
                let typed = |column: Column| match column.relation.is_none() && column.name == value {
                    true => Expr::Column(column).alias_with_metadata(&value, Some(metadata.clone().into())),
                    false => Expr::Column(column),
                };
                let columns: Vec<Expr> = plan.schema().columns().into_iter().map(typed).collect();
                plan.project(columns)?
            }
            None => plan,
        };
        Ok(Source::of_plan(aliased(plan.build()?, alias)?))
    }
}

/// Returns the columns that do not become rows.
fn rest(columns: &[ScopeColumn], values: &[Expr]) -> Vec<Expr> {
    let is_kept = |column: &&ScopeColumn| column.visibility.is_bare() && !values.contains(&column.value);
    columns.iter().filter(is_kept).map(ScopeColumn::named_value).collect()
}

/// Returns values of one type, and the metadata of the type: types such as IPV4 share an Arrow type with others.
fn of_one_type(
    values: Vec<Expr>,
    schema: &DFSchema,
    unpivot: &Unpivot,
) -> Result<(Vec<Expr>, Option<HashMap<String, String>>)> {
    let fields: Vec<FieldRef> =
        values.iter().map(|value| Ok(value.to_field(schema)?.1)).collect::<datafusion::common::Result<_>>()?;
    let Some((first, others)) = fields.split_first() else { return Ok((values, None)) };
    let column_type = door::column_type(first);
    if others.iter().all(|other| other.data_type() == first.data_type() && door::column_type(other) == column_type) {
        return Ok((values, column_type.map(|of| door::field("", of, true).metadata().clone())));
    }
    let values = with_doubles(&values, schema).unwrap_or(values);
    let values = with_times(&values, schema).unwrap_or(values);
    let types = values.iter().map(|value| value.get_type(schema)).collect::<datafusion::common::Result<Vec<_>>>()?;
    let Some(common) = common_type(&types) else {
        let error = Error::invalid("the columns of an UNPIVOT have no common type");
        return Err(error.with_hint("cast them in a sub-query").at(unpivot.span.start as usize).into());
    };
    let typed = |(value, own): (Expr, DataType)| if own == common { value } else { cast(value, common.clone()) };
    Ok((values.into_iter().zip(types).map(typed).collect(), None))
}

fn common_type(types: &[DataType]) -> Option<DataType> {
    match types {
        [one, rest @ ..] if rest.iter().all(|other| other == one) => Some(one.clone()),
        types => type_union_resolution(types),
    }
}
