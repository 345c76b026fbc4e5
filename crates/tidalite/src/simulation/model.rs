//! Plain model of the expected content: tables are lists of rows in order of arrival.

use std::collections::HashSet;
use std::sync::Arc;
use tidalite_types::schema::same_name;
use tidalite_types::{ColumnType, Command, ErrorKind, PartitionBy, TimeUnit, Ttl};

/// A value: fixed-width values are integers (floating point by its bits), all others bytes (symbols by name).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cell {
    Null,
    Int(i128),
    Bytes(Arc<[u8]>),
}

/// A short format, because a sequence contains many cells.
impl std::fmt::Debug for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Null => f.write_str("-"),
            Cell::Int(value) => value.fmt(f),
            Cell::Bytes(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
        }
    }
}

/// Shared between the states of a model.
pub type Row = Arc<Vec<Cell>>;

#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    pub name: String,
    pub columns: Vec<ColumnModel>,
    pub partition_by: PartitionBy,
    pub ttl: Option<Ttl>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnModel {
    pub name: String,
    pub column_type: ColumnType,
    pub is_designated: bool,
    /// True for an upsert key: rows with equal values in all keys replace each other.
    pub is_key: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub schema: Schema,
    /// In order of arrival.
    pub rows: Vec<Row>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Model {
    /// In order of creation.
    pub tables: Vec<Table>,
}

/// Rows for one table, as sent by a client.
#[derive(Clone, Debug)]
pub struct Rows {
    pub table: String,
    pub columns: Vec<(String, ColumnType)>,
    pub cells: Vec<Row>,
    pub timestamps: Option<(TimeUnit, Vec<i64>)>,
}

/// One commit.
#[derive(Clone, Debug)]
pub enum Change {
    Rows {
        batches: Vec<Rows>,
        may_create: bool,
    },
    Command(Command),
    Rewrite(Rewrite),
    /// Several changes that create nothing by their rows: all or none of them.
    Transaction(Vec<Change>),
}

/// DELETE or UPDATE of the rows whose column has a certain remainder (bytes: their number).
#[derive(Clone, Debug)]
pub struct Rewrite {
    pub table: String,
    pub column: String,
    pub modulus: i128,
    pub remainder: i128,
    /// The new value of the column; `None` deletes the rows.
    pub becomes: Option<Cell>,
}

impl Rewrite {
    pub fn hits(&self, cell: &Cell) -> bool {
        match cell {
            Cell::Null => false,
            Cell::Int(value) => value.rem_euclid(self.modulus) == self.remainder,
            Cell::Bytes(bytes) => bytes.len() as i128 % self.modulus == self.remainder,
        }
    }
}

impl Schema {
    pub fn designated(&self) -> Option<(usize, TimeUnit)> {
        let at = self.columns.iter().position(|c| c.is_designated)?;
        match self.columns[at].column_type {
            ColumnType::Timestamp(unit) => Some((at, unit)),
            _ => None,
        }
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| same_name(&c.name, name))
    }

    fn push(&mut self, name: &str, column_type: ColumnType, is_designated: bool) -> Result<(), ErrorKind> {
        if self.find(name).is_some() {
            return Err(ErrorKind::Conflict);
        }
        self.columns.push(ColumnModel { name: name.to_owned(), column_type, is_designated, is_key: false });
        Ok(())
    }
}

impl Table {
    /// Returns the rows in the order of queries: by time, equal times in order of arrival.
    pub fn ordered(&self) -> Vec<Row> {
        let mut rows = self.rows.clone();
        if let Some((at, _)) = self.schema.designated() {
            rows.sort_by_key(|row| time(&row[at]));
        }
        rows
    }

    /// Returns the start of the partition of each row that exceeds the TTL.
    pub fn expired(&self) -> HashSet<i64> {
        let Schema { ttl: Some(ttl), partition_by: by, .. } = self.schema else { return HashSet::new() };
        let Some((at, unit)) = self.schema.designated() else { return HashSet::new() };
        let times = || self.rows.iter().map(|row| time(&row[at]));
        let Some(newest) = times().max() else { return HashSet::new() };
        let cutoff = ttl.cutoff(newest, unit);
        times().map(|ts| by.interval(ts, unit)).filter(|(_, end)| *end <= cutoff).map(|(start, _)| start).collect()
    }

    fn widen(&mut self) {
        let width = self.schema.columns.len();
        let narrow = self.rows.iter_mut().filter(|row| row.len() < width);
        narrow.for_each(|row| Arc::make_mut(row).resize(width, Cell::Null));
    }
}

impl Model {
    pub fn find(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|t| same_name(&t.schema.name, name))
    }

    /// Applies a change, or returns the reason for its rejection, in which case nothing changes.
    pub fn apply(&mut self, change: &Change) -> Result<(), ErrorKind> {
        match change {
            Change::Rows { batches, may_create } => self.apply_rows(batches, *may_create),
            Change::Command(command) => self.apply_command(command),
            Change::Rewrite(rewrite) => self.apply_rewrite(rewrite),
            Change::Transaction(changes) => {
                let mut after = self.clone();
                changes.iter().try_for_each(|change| after.apply(change))?;
                *self = after;
                Ok(())
            }
        }
    }

    /// Changed rows become the newest ones.
    fn apply_rewrite(&mut self, rewrite: &Rewrite) -> Result<(), ErrorKind> {
        let table = self.table(&rewrite.table)?;
        let at = table.schema.find(&rewrite.column).ok_or(ErrorKind::NotFound)?;
        let (hit, kept) = std::mem::take(&mut table.rows).into_iter().partition(|row| rewrite.hits(&row[at]));
        table.rows = kept;
        if let Some(cell) = &rewrite.becomes {
            let changed = Vec::into_iter(hit).map(|mut row| {
                Arc::make_mut(&mut row)[at] = cell.clone();
                row
            });
            table.rows.extend(changed);
        }
        Ok(())
    }

    fn apply_rows(&mut self, batches: &[Rows], may_create: bool) -> Result<(), ErrorKind> {
        let mut schemas: Vec<Schema> = self.tables.iter().map(|t| t.schema.clone()).collect();
        let mut times = Vec::new();
        for batch in batches {
            times.push(fit(&mut schemas, batch, may_create)?);
        }
        self.tables.extend(
            schemas[self.tables.len()..].iter().map(|schema| Table { schema: schema.clone(), rows: Vec::new() }),
        );
        for (table, schema) in self.tables.iter_mut().zip(schemas) {
            table.schema = schema;
            table.widen();
        }
        for (batch, times) in batches.iter().zip(times) {
            let at = self.find(&batch.table).expect("it was there or created");
            append(&mut self.tables[at], batch, &times);
        }
        Ok(())
    }

    fn table(&mut self, name: &str) -> Result<&mut Table, ErrorKind> {
        let at = self.find(name).ok_or(ErrorKind::NotFound)?;
        Ok(&mut self.tables[at])
    }

    fn apply_command(&mut self, command: &Command) -> Result<(), ErrorKind> {
        match command {
            Command::CreateTable(create) => {
                if self.find(&create.name).is_some() {
                    return if create.if_not_exists { Ok(()) } else { Err(ErrorKind::Conflict) };
                }
                let mut schema = Schema {
                    name: create.name.clone(),
                    columns: Vec::new(),
                    partition_by: create.partition_by,
                    ttl: create.ttl,
                };
                for (name, column_type) in &create.columns {
                    let is_designated = create.designated.as_ref().is_some_and(|d| same_name(d, name));
                    schema.push(name, *column_type, is_designated)?;
                }
                for key in &create.dedup {
                    let at = schema.find(key).ok_or(ErrorKind::NotFound)?;
                    schema.columns[at].is_key = true;
                }
                self.tables.push(Table { schema, rows: Vec::new() });
            }
            Command::SetDedup { table, keys } => {
                assert!(keys.is_empty(), "the script only switches it off");
                self.table(table)?.schema.columns.iter_mut().for_each(|c| c.is_key = false);
            }
            Command::DropTable { table, if_exists } => match self.find(table) {
                Some(at) => drop(self.tables.remove(at)),
                None if *if_exists => {}
                None => return Err(ErrorKind::NotFound),
            },
            Command::Truncate { table } => self.table(table)?.rows.clear(),
            Command::RenameTable { table, to } => {
                let at = self.find(table).ok_or(ErrorKind::NotFound)?;
                if self.find(to).is_some_and(|other| other != at) {
                    return Err(ErrorKind::Conflict);
                }
                self.tables[at].schema.name.clone_from(to);
            }
            Command::AddColumn { table, column, column_type, if_not_exists } => {
                let table = self.table(table)?;
                if *if_not_exists && table.schema.find(column).is_some() {
                    return Ok(());
                }
                table.schema.push(column, *column_type, false)?;
                table.widen();
            }
            Command::DropColumn { table, column, .. } => {
                let table = self.table(table)?;
                let at = table.schema.find(column).ok_or(ErrorKind::NotFound)?;
                let ColumnModel { is_designated, is_key, .. } = table.schema.columns[at];
                if is_designated || is_key || table.schema.columns.len() == 1 {
                    return Err(ErrorKind::Invalid);
                }
                table.schema.columns.remove(at);
                table.rows.iter_mut().for_each(|row| drop(Arc::make_mut(row).remove(at)));
            }
            Command::RenameColumn { table, column, to } => {
                let schema = &mut self.table(table)?.schema;
                let at = schema.find(column).ok_or(ErrorKind::NotFound)?;
                if schema.find(to).is_some_and(|other| other != at) {
                    return Err(ErrorKind::Conflict);
                }
                schema.columns[at].name.clone_from(to);
            }
            Command::SetTtl { table, ttl } => {
                let schema = &mut self.table(table)?.schema;
                if ttl.is_some() && schema.partition_by == PartitionBy::None {
                    return Err(ErrorKind::Invalid);
                }
                schema.ttl = *ttl;
            }
            // The lag changes no rows.
            Command::SetLag { table, lag_us } => {
                let schema = &self.table(table)?.schema;
                if lag_us.is_some() && schema.designated().is_none() {
                    return Err(ErrorKind::Invalid);
                }
            }
            Command::DropPartitions { table, partitions } => {
                let table = self.table(table)?;
                let by = table.schema.partition_by;
                let Some((at, unit)) = table.schema.designated().filter(|_| by != PartitionBy::None) else {
                    return Err(ErrorKind::Invalid);
                };
                let start = |ts: i64| by.interval(ts, unit).0;
                let dropped: HashSet<i64> = partitions.iter().map(|ts| start(*ts)).collect();
                table.rows.retain(|row| !dropped.contains(&start(time(&row[at]))));
            }
            // No sequence has views, because they depend on queries.
            Command::CreateView(_)
            | Command::DropView { .. }
            | Command::SetRefresh { .. }
            | Command::SetRefreshLimit { .. }
            | Command::SetViewState { .. } => return Err(ErrorKind::Internal),
        }
        Ok(())
    }
}

/// Returns the designated timestamp of a row, which is never NULL.
pub fn time(cell: &Cell) -> i64 {
    match cell {
        Cell::Int(ts) => *ts as i64,
        other => panic!("{other:?} is no timestamp"),
    }
}

/// Creates the table and columns that a batch requires; returns its timestamps in the table's unit.
fn fit(schemas: &mut Vec<Schema>, batch: &Rows, may_create: bool) -> Result<Vec<i64>, ErrorKind> {
    let found = schemas.iter().position(|s| same_name(&s.name, &batch.table));
    let Some(at) = found else {
        if !may_create {
            return Err(ErrorKind::NotFound);
        }
        let mut schema =
            Schema { name: batch.table.clone(), columns: Vec::new(), partition_by: PartitionBy::None, ttl: None };
        for (name, column_type) in &batch.columns {
            schema.push(name, *column_type, false)?;
        }
        if let Some((unit, _)) = &batch.timestamps {
            let unit = if *unit == TimeUnit::Nanos { TimeUnit::Nanos } else { TimeUnit::Micros };
            schema.push("timestamp", ColumnType::Timestamp(unit), true)?;
            schema.partition_by = PartitionBy::Day;
        }
        if schema.columns.is_empty() {
            return Err(ErrorKind::Invalid);
        }
        schemas.push(schema);
        return fit(schemas, batch, may_create);
    };
    let mut schema = schemas[at].clone();
    for (name, column_type) in &batch.columns {
        match schema.find(name) {
            // Occurs only in a shortened sequence, for a column created with another type: the model converts nothing.
            Some(at) if schema.columns[at].column_type != *column_type => return Err(ErrorKind::Internal),
            Some(_) => {}
            None if !may_create => return Err(ErrorKind::NotFound),
            None => schema.push(name, *column_type, false)?,
        }
    }
    let times = match (schema.designated(), &batch.timestamps) {
        (None, Some(_)) => return Err(ErrorKind::Invalid),
        (None, None) => Vec::new(),
        (Some((designated, unit)), given) => {
            let named = batch.columns.iter().position(|(name, _)| schema.find(name) == Some(designated));
            match (given, named) {
                (Some((from, values)), None) => values
                    .iter()
                    .map(|ts| in_unit(*ts, *from, unit))
                    .collect::<Option<_>>()
                    .ok_or(ErrorKind::Invalid)?,
                (None, Some(column)) => batch
                    .cells
                    .iter()
                    .map(|row| match &row[column] {
                        Cell::Int(ts) => Ok(*ts as i64),
                        _ => Err(ErrorKind::Invalid),
                    })
                    .collect::<Result<_, _>>()?,
                _ => return Err(ErrorKind::Invalid),
            }
        }
    };
    schemas[at] = schema;
    Ok(times)
}

fn in_unit(ts: i64, from: TimeUnit, to: TimeUnit) -> Option<i64> {
    let scaled = i128::from(ts) * i128::from(to.per_second());
    i64::try_from(scaled.div_euclid(i128::from(from.per_second()))).ok()
}

fn append(table: &mut Table, batch: &Rows, times: &[i64]) {
    let width = table.schema.columns.len();
    let places: Vec<usize> =
        batch.columns.iter().map(|(name, _)| table.schema.find(name).expect("it was there or created")).collect();
    let designated = table.schema.designated();
    let rows = batch.cells.iter().enumerate().map(|(number, cells)| {
        let mut row = vec![Cell::Null; width];
        cells.iter().zip(&places).for_each(|(cell, at)| row[*at] = cell.clone());
        if let Some((at, _)) = designated {
            row[at] = Cell::Int(i128::from(times[number]));
        }
        Arc::new(row)
    });
    upsert(table, rows.collect());
}

/// Keeps the last of the rows with equal keys.
///
/// The rows of one commit are resolved first: the last row keeps its position, even if an earlier one is equal in every
/// column. Afterwards, a row that equals an existing row changes nothing, including the position among rows of the same
/// time.
fn upsert(table: &mut Table, rows: Vec<Row>) {
    let keys: Vec<usize> = (0..table.schema.columns.len()).filter(|at| table.schema.columns[*at].is_key).collect();
    if keys.is_empty() {
        return table.rows.extend(rows);
    }
    let has_same_keys = |a: &Row, b: &Row| keys.iter().all(|key| a[*key] == b[*key]);
    for (number, row) in rows.iter().enumerate() {
        if rows[number + 1..].iter().any(|later| has_same_keys(later, row)) {
            continue;
        }
        match table.rows.iter().position(|other| has_same_keys(other, row)) {
            Some(at) if table.rows[at] == *row => continue,
            Some(at) => drop(table.rows.remove(at)),
            None => {}
        }
        table.rows.push(row.clone());
    }
}
