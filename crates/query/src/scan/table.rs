//! One of our tables as DataFusion's planner sees it.

use super::exec::ScanExec;
use super::predicate::Predicate;
use super::prune::prune;
use super::read::{ADDRESS, Output, Reader, address_column};
use super::several::{Compiles, Several};
use super::spec::{Form, Order, ScanSpec};
use crate::door;
use crate::pg_catalog::objects::table_oid;
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use datafusion::prelude::SessionConfig;
use std::sync::Arc;
use tidalite_storage::TableSnapshot;
use tidalite_types::{ColumnSchema, TableSchema};

#[derive(Debug)]
pub(crate) struct NativeTable {
    pub snapshot: Arc<TableSnapshot>,
    schema: SchemaRef,
    order: Order,
    has_addresses: bool,
    /// Only rows of these times are there, from and to.
    within: Option<(i64, i64)>,
    /// Whether conditions on several columns are left to general operators.
    is_plain_only: bool,
}

impl NativeTable {
    pub fn new(snapshot: Arc<TableSnapshot>) -> NativeTable {
        let schema = &snapshot.schema;
        let oid = table_oid(snapshot.id);
        let field = |(c, number): (&ColumnSchema, usize)| {
            door::table_field(c, Some(c.id) == schema.designated, Some((oid, number)))
        };
        let fields: Vec<_> = schema.columns.iter().zip(1..).map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        NativeTable { snapshot, schema, order: Order::Free, has_addresses: false, within: None, is_plain_only: false }
    }

    /// The rows whose designated timestamp is in `[lo, hi)`.
    pub fn within(snapshot: Arc<TableSnapshot>, lo: i64, hi: i64) -> NativeTable {
        NativeTable { within: Some((lo, hi)), ..NativeTable::new(snapshot) }
    }

    /// The same, only rows whose designated timestamp is in `[lo, hi]`.
    pub fn bounded(self, lo: i64, hi: i64) -> NativeTable {
        NativeTable { within: Some((lo, hi.saturating_add(1))), ..self }
    }

    /// With one more column, the last: where each row is in the snapshot.
    pub fn addressed(snapshot: Arc<TableSnapshot>) -> NativeTable {
        let table = NativeTable::new(snapshot);
        let address = door::named(&Field::new("", DataType::Int64, false), ADDRESS);
        let fields = table.schema.fields().iter().cloned().chain([Arc::new(address)]);
        NativeTable { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), has_addresses: true, ..table }
    }

    /// The same table, read in an order.
    pub fn ordered(&self, order: Order) -> NativeTable {
        let (snapshot, schema) = (self.snapshot.clone(), self.schema.clone());
        NativeTable { snapshot, schema, order, ..*self }
    }

    /// The same; whether it answers conditions on several columns.
    pub fn fast(self, is_fast: bool) -> NativeTable {
        NativeTable { is_plain_only: !is_fast, ..self }
    }

    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether it is the whole table and nothing but its columns.
    pub fn is_plain(&self) -> bool {
        !self.has_addresses && self.within.is_none()
    }

    fn of_times(&self) -> Option<Predicate> {
        let (lo, hi) = self.within.filter(|within| *within != tidalite_types::view::ALWAYS)?;
        let column = self.snapshot.schema.designated?;
        let values = tidalite_storage::ValueSet::ints(vec![(i128::from(lo), i128::from(hi) - 1)]);
        Some(Predicate { column, values, null: None, text: format!("times in [{lo}, {hi})") })
    }

    /// Whether the scan answers all that the filters say.
    pub fn answers(&self, filters: &[Expr]) -> bool {
        self.wanted(filters).is_exact
    }

    fn wanted(&self, filters: &[Expr]) -> Asked {
        let known = Asked::of(&self.snapshot.schema, filters, !self.is_plain_only);
        known.and(self.of_times())
    }

    /// Whether it answers a part of a filter.
    fn answers_part(&self, part: &Expr) -> bool {
        let (part, schema) = (with_some_values(part), &self.snapshot.schema);
        Predicate::of(&part, schema).is_some() || !self.is_plain_only && Several::of(&part, schema).is_some()
    }
}

/// What a scan answers of filters.
pub(super) struct Asked {
    /// One a column, but for those that are not combined.
    predicates: Vec<Predicate>,
    several: Vec<Several>,
    /// Whether that is all they say.
    pub is_exact: bool,
}

impl Asked {
    fn of(table: &TableSchema, filters: &[Expr], is_fast: bool) -> Asked {
        let parts: Vec<_> = filters.iter().flat_map(split_conjunction).collect();
        let (mut predicates, mut several, mut known) = (Vec::new(), Vec::new(), 0);
        for part in &parts {
            if let Some(predicate) = Predicate::of(part, table) {
                predicates.push(predicate);
            } else if let Some(wider) = Several::of(part, table).filter(|_| is_fast) {
                several.push(wider);
            } else {
                continue;
            }
            known += 1;
        }
        let is_exact = known == parts.len();
        // The optimizer may find out that a filter handed over before is never true, as `ts IS NULL`.
        predicates.extend(parts.iter().any(|part| is_never(part)).then(|| nothing(table)).flatten());
        Asked { predicates: Predicate::joined(predicates.into_iter()), several, is_exact }
    }

    fn and(self, predicate: Option<Predicate>) -> Asked {
        Asked { predicates: Predicate::joined(self.predicates.into_iter().chain(predicate)), ..self }
    }
}

#[async_trait]
impl TableProvider for NativeTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let of = |filter: &&Expr| {
            let parts = split_conjunction(filter);
            let known = parts.iter().filter(|part| self.answers_part(part)).count();
            match known {
                0 => TableProviderFilterPushDown::Unsupported,
                all if all == parts.len() => TableProviderFilterPushDown::Exact,
                _ => TableProviderFilterPushDown::Inexact,
            }
        };
        Ok(filters.iter().map(of).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows = self.snapshot.row_count() as usize;
        statistics.num_rows = if self.within.is_some() { Precision::Inexact(rows) } else { Precision::Exact(rows) };
        Some(statistics)
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let table = &self.snapshot.schema;
        let indexes = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        // Without the time among its columns the output's order means nothing to the operators above.
        let has_time = indexes.iter().any(|i| door::is_designated(self.schema.field(*i)));
        let has_order = has_time || table.designated.is_none();
        let order = if has_order { self.order } else { Order::Free };
        let columns: Vec<_> =
            indexes.iter().map(|i| table.columns.get(*i).cloned().unwrap_or_else(address_column)).collect();
        let schema = Arc::new(self.schema.project(&indexes)?);
        let wanted = self.wanted(filters);
        let limit = limit.filter(|_| wanted.is_exact);
        Ok(Arc::new(scan_of(&self.snapshot, (columns, schema), wanted, limit, order, (state.config(), None))?))
    }
}

/// A scan of columns, which come out as the fields of `schema`; for `known` see [`ScanExec::new`].
pub(super) fn scan_of(
    snapshot: &Arc<TableSnapshot>,
    (columns, schema): (Vec<ColumnSchema>, SchemaRef),
    wanted: Asked,
    limit: Option<usize>,
    order: Order,
    (config, known): (&SessionConfig, Option<&Arc<PlanProperties>>),
) -> Result<ScanExec> {
    let Asked { predicates, several, .. } = wanted;
    let pruned = prune(snapshot, &predicates, &several)?;
    let spec = ScanSpec {
        table: snapshot.id,
        txn: snapshot.txn,
        segments: kept_segments(snapshot, &pruned),
        projection: columns.iter().map(|c| c.id).collect(),
        limit,
        predicates,
        several,
        compiles: config.get_extension::<Compiles>().is_some(),
        order,
    };
    let columns = columns.into_iter().map(|column| Output { column, form: Form::Values }).collect();
    let reader = Reader::new(snapshot.clone(), columns, schema, &spec);
    ScanExec::new(spec, reader, pruned, config.target_partitions(), known)
}

/// What a scan of the whole table answers of filters.
pub(super) fn asked(table: &TableSchema, filters: &[Expr]) -> Asked {
    Asked::of(table, filters, true)
}

/// A predicate that no row satisfies.
fn nothing(table: &TableSchema) -> Option<Predicate> {
    let (column, values) = (table.columns.first()?.id, tidalite_storage::ValueSet::Nothing);
    Some(Predicate { column, values, null: Some(false), text: "false".to_owned() })
}

/// A filter whose parameters have no values yet, with some: what is understood of those is of all.
fn with_some_values(filter: &Expr) -> std::borrow::Cow<'_, Expr> {
    let is_parameter = |e: &Expr| matches!(e, Expr::Placeholder(_));
    if !filter.exists(|e| Ok(is_parameter(e))).unwrap_or(true) {
        return std::borrow::Cow::Borrowed(filter);
    }
    let done = filter.clone().transform_up(|e| {
        let value = match &e {
            Expr::Placeholder(of) => of.field.as_ref().and_then(|f| ScalarValue::new_default(f.data_type()).ok()),
            _ => None,
        };
        Ok(match value {
            Some(value) => Transformed::yes(Expr::Literal(value, None)),
            None => Transformed::no(e),
        })
    });
    done.map_or(std::borrow::Cow::Borrowed(filter), |done| std::borrow::Cow::Owned(done.data))
}

fn is_never(filter: &Expr) -> bool {
    matches!(filter, Expr::Literal(ScalarValue::Boolean(Some(false) | None) | ScalarValue::Null, _))
}

fn kept_segments(snapshot: &TableSnapshot, pruned: &super::prune::Pruned) -> Vec<tidalite_types::SegmentId> {
    let mut indexes: Vec<usize> = pruned
        .sources
        .iter()
        .filter_map(|source| match source.pieces.first() {
            Some(super::prune::Piece::Block { segment, .. }) => Some(*segment),
            _ => None,
        })
        .collect();
    indexes.dedup();
    indexes.into_iter().map(|index| snapshot.segments[index].meta().id).collect()
}
