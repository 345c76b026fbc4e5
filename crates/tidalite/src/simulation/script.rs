//! Generates the steps from a seed: requests of clients, and faults.

use super::model::{Cell, Change, Model, Rewrite, Row, Rows, Table};
use super::values::{Style, cell};
use std::sync::Arc;
use tidalite_storage::fs::faulty::Mood;
use tidalite_types::command::CreateTable;
use tidalite_types::{ColumnType, Command, PartitionBy, TimeUnit, Ttl};

/// One step of a sequence. Each is valid after any others, so that a sequence can be shortened.
#[derive(Clone, Debug)]
pub enum Action {
    /// Commits that reach the log together, in this order.
    Commit(Vec<Change>),
    /// A load of these parts, unless the table does not exist or has upsert keys.
    Load(Vec<Rows>),
    /// Drops partitions older than a TTL.
    Expire,
    /// The same, then merges everything and writes a checkpoint.
    Settle,
    /// Merges the table, if it exists.
    Merge(String),
    /// Compacts late segments of the table.
    Compact(String),
    /// Merges the table and rewrites it completely for size.
    Seal(String),
    Checkpoint,
    /// A reader takes and keeps a snapshot of everything.
    Pin,
    /// The oldest reader reads its snapshot again and releases it.
    Unpin,
    Check,
    CheckSql,
    /// An orderly close, and a new open.
    Reopen,
    /// The process ends and starts again.
    Kill,
    /// The power is lost.
    PowerLoss {
        survivor: u64,
    },
    Mood(Mood),
    /// A fault occurs `after` this many file operations of the action.
    During {
        after: u64,
        fault: Fault,
        action: Box<Action>,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Fails(std::io::ErrorKind),
    PowerLoss { survivor: u64 },
    Kill,
}

/// The parameters of a sequence.
#[derive(Clone, Debug)]
pub struct Plan {
    pub steps: usize,
    pub log_file_bytes: u64,
    pub is_synced: bool,
    /// Number of rows of one table above which it is truncated.
    rows_max: usize,
    /// Number of faults in a thousand steps.
    faults: u32,
    tables: usize,
    types: Vec<ColumnType>,
    batch_rows_max: usize,
    /// True if some commits are larger than a block.
    has_large_commits: bool,
    /// True if most rows have random times within a few days, so that segments of their times exist already.
    falls_everywhere: bool,
}

pub struct Script {
    rng: fastrand::Rng,
    pub plan: Plan,
    /// In nanoseconds.
    now: i64,
    mood_steps: u32,
}

const SECOND: i64 = 1_000_000_000;

pub const TYPES: [ColumnType; 21] = [
    ColumnType::Boolean,
    ColumnType::Byte,
    ColumnType::Short,
    ColumnType::Int,
    ColumnType::Long,
    ColumnType::Float,
    ColumnType::Double,
    ColumnType::Decimal { precision: 9, scale: 2 },
    ColumnType::Decimal { precision: 18, scale: 3 },
    ColumnType::Decimal { precision: 38, scale: 18 },
    ColumnType::Timestamp(TimeUnit::Millis),
    ColumnType::Timestamp(TimeUnit::Micros),
    ColumnType::Timestamp(TimeUnit::Nanos),
    ColumnType::Date,
    ColumnType::Symbol,
    ColumnType::Varchar,
    ColumnType::Binary,
    ColumnType::Uuid,
    ColumnType::Ipv4,
    ColumnType::DoubleArray { dims: 1 },
    ColumnType::Json,
];

impl Script {
    pub fn new(seed: u64) -> Script {
        let mut rng = fastrand::Rng::with_seed(seed);
        let has_large_commits = rng.u32(..60) == 0;
        let falls_everywhere = !has_large_commits && rng.u32(..4) == 0;
        let mut types: Vec<ColumnType> = TYPES.to_vec();
        rng.shuffle(&mut types);
        types.truncate(if has_large_commits { 3 } else { [2, 5, 8, TYPES.len()][rng.usize(..4)] });
        let plan = Plan {
            steps: if has_large_commits { 60 } else { rng.usize(200..2000) },
            log_file_bytes: [4 << 10, 16 << 10, 64 << 10][rng.usize(..3)],
            is_synced: rng.u32(..8) != 0,
            rows_max: if has_large_commits { 200_000 } else { [50, 400, 2000][rng.usize(..3)] },
            faults: [0, 5, 30, 100][rng.usize(..4)],
            tables: rng.usize(1..=5),
            types,
            batch_rows_max: [1, 4, 30][rng.usize(..3)],
            has_large_commits,
            falls_everywhere,
        };
        Script { rng, plan, now: 1_700_000_000 * SECOND, mood_steps: 0 }
    }

    pub fn next(&mut self, model: &Model) -> Action {
        if self.mood_steps > 0 {
            self.mood_steps -= 1;
            if self.mood_steps == 0 {
                return Action::Mood(Mood::Well);
            }
        }
        let action = self.sound(model);
        if self.rng.u32(..1000) >= self.plan.faults {
            return action;
        }
        if self.rng.u32(..6) == 0 && self.mood_steps == 0 {
            self.mood_steps = self.rng.u32(1..30);
            let moods = [Mood::Full, Mood::ReadOnly, Mood::Unreadable, Mood::Erratic { one_in: self.rng.u32(2..40) }];
            return Action::Mood(moods[self.rng.usize(..4)]);
        }
        let fault = match self.rng.u32(..5) {
            0 | 1 => Fault::PowerLoss { survivor: self.rng.u64(..) },
            2 => Fault::Kill,
            3 => Fault::Fails(std::io::ErrorKind::Other),
            _ => Fault::Fails(std::io::ErrorKind::StorageFull),
        };
        let after = if self.rng.bool() { self.rng.u64(..4) } else { self.rng.u64(..40) };
        Action::During { after, fault, action: Box::new(action) }
    }

    /// Returns an action without a fault.
    fn sound(&mut self, model: &Model) -> Action {
        // Frequent small merges create late segments next to the many existing rows.
        if self.plan.falls_everywhere && self.rng.u32(..8) == 0 {
            return Action::Merge(self.table_name());
        }
        match self.rng.u32(..1000) {
            0..4 => Action::Settle,
            4..16 => Action::Merge(self.table_name()),
            16..18 => Action::Seal(self.table_name()),
            18..20 => Action::Checkpoint,
            20..25 => Action::Pin,
            25..30 => Action::Unpin,
            30..45 => Action::Check,
            45..46 => Action::CheckSql,
            46..49 => Action::Reopen,
            49..52 => Action::Kill,
            52..55 => Action::PowerLoss { survivor: self.rng.u64(..) },
            55..60 => Action::Expire,
            60..63 => Action::Compact(self.table_name()),
            63..70 => self.load(model),
            _ => {
                // The grouping of large commits depends on the time of syncs.
                let is_group = !self.plan.has_large_commits && self.rng.u32(..4) == 0;
                let count = if is_group { self.rng.usize(2..8) } else { 1 };
                let mut model_after = Schemas::of(model);
                let mut changes = Vec::new();
                // First of its group: it changes rows that existed before.
                if !self.plan.has_large_commits && self.rng.u32(..8) == 0 {
                    changes.extend(self.rewrite(model));
                } else if !self.plan.has_large_commits && self.rng.u32(..12) == 0 {
                    changes.push(self.transaction(model, &mut model_after));
                }
                changes.extend((0..count).map(|_| self.change(model, &mut model_after)));
                Action::Commit(changes)
            }
        }
    }

    fn table_name(&mut self) -> String {
        let name = format!("t{}", self.rng.usize(..self.plan.tables));
        if self.rng.u32(..20) == 0 { name.to_uppercase() } else { name }
    }

    /// Returns a column whose name contains its type, so that two clients never disagree about the type.
    fn column(&mut self) -> (String, ColumnType) {
        let column_type = self.plan.types[self.rng.usize(..self.plan.types.len())];
        (self.column_name(column_type), column_type)
    }

    fn column_name(&mut self, column_type: ColumnType) -> String {
        let name = format!("{column_type} {}", self.rng.u32(..2)).replace(['(', ',', ')'], "_");
        if self.rng.u32(..30) == 0 { name.to_lowercase() } else { name }
    }

    fn change(&mut self, model: &Model, schemas: &mut Schemas) -> Change {
        let full = model.tables.iter().find(|t| t.rows.len() > self.plan.rows_max);
        let change = match full {
            Some(table) if self.rng.u32(..4) == 0 => Change::Command(self.removal(table)),
            _ if self.rng.u32(..12) == 0 => Change::Command(self.command(model)),
            _ => {
                let tables = if self.rng.u32(..10) == 0 { self.rng.usize(2..4) } else { 1 };
                let may_create = self.rng.u32(..4) != 0;
                Change::Rows { batches: (0..tables).map(|_| self.rows(schemas)).collect(), may_create }
            }
        };
        // The effect on the rows is irrelevant here.
        let _ = schemas.0.apply(&change);
        change
    }

    /// Returns changes of rows and schemas that are committed together.
    fn transaction(&mut self, model: &Model, schemas: &mut Schemas) -> Change {
        let (mut changes, mut within) = (Vec::new(), Schemas(schemas.0.clone()));
        for _ in 0..self.rng.usize(1..5) {
            let change = match self.rng.u32(..4) {
                0 => self.rewrite(model),
                _ => Some(self.change(model, &mut within)),
            };
            changes.extend(change.map(|change| match change {
                Change::Rows { batches, .. } => Change::Rows { batches, may_create: false },
                Change::Command(Command::DropPartitions { table, .. }) => Change::Command(Command::Truncate { table }),
                other => other,
            }));
        }
        let change = Change::Transaction(changes);
        let _ = schemas.0.apply(&change);
        change
    }

    fn load(&mut self, model: &Model) -> Action {
        let schemas = Schemas::of(model);
        let mut parts: Vec<Rows> = (0..self.rng.usize(1..12)).map(|_| self.rows(&schemas)).collect();
        let table = parts[0].table.clone();
        parts.retain(|part| part.table == table);
        Action::Load(parts)
    }

    fn rewrite(&mut self, model: &Model) -> Option<Change> {
        let table = model.find(&self.table_name()).map(|at| &model.tables[at])?;
        let columns = &table.schema.columns;
        let column = columns.get(self.rng.usize(..columns.len().max(1)))?;
        let modulus = [1, 2, 3, 7, 1000][self.rng.usize(..5)];
        let has_keys = columns.iter().any(|c| c.is_key);
        let is_update =
            self.rng.bool() && !column.is_designated && !has_keys && table.rows.len() < 2 * self.plan.rows_max;
        let style = Style::draw(&mut self.rng);
        let becomes = is_update.then(|| cell(&mut self.rng, column.column_type, style, 0));
        let (table, column) = (table.schema.name.clone(), column.name.clone());
        let remainder = self.rng.i128(0..modulus);
        Some(Change::Rewrite(Rewrite { table, column, modulus, remainder, becomes }))
    }

    fn removal(&mut self, table: &Table) -> Command {
        let name = table.schema.name.clone();
        match self.rng.u32(..4) {
            0 => Command::Truncate { table: name },
            1 => Command::DropTable { table: name, if_exists: self.rng.bool() },
            _ => self.drop_partitions(table),
        }
    }

    fn drop_partitions(&mut self, table: &Table) -> Command {
        let name = table.schema.name.clone();
        let Some((at, _)) = table.schema.designated().filter(|_| table.schema.partition_by != PartitionBy::None) else {
            return Command::Truncate { table: name };
        };
        let mut partitions = Vec::new();
        for _ in 0..self.rng.usize(1..6) {
            if !table.rows.is_empty() {
                partitions.push(super::model::time(&table.rows[self.rng.usize(..table.rows.len())][at]));
            }
        }
        Command::DropPartitions { table: name, partitions }
    }

    fn command(&mut self, model: &Model) -> Command {
        let table = self.table_name();
        match self.rng.u32(..16) {
            15 => Command::SetLag { table, lag_us: self.lag() },
            14 => Command::SetTtl { table, ttl: (self.rng.u32(..3) != 0).then(|| self.ttl()) },
            0..4 => self.create_table(table),
            4 => Command::DropTable { table, if_exists: self.rng.bool() },
            5 => Command::Truncate { table },
            6 | 7 => Command::RenameTable { table, to: self.table_name() },
            8 | 9 => {
                let (column, column_type) = self.column();
                Command::AddColumn { table, column, column_type, if_not_exists: self.rng.bool() }
            }
            10 if self.rng.u32(..4) == 0 => Command::SetDedup { table, keys: Vec::new() },
            10 => Command::DropColumn { table, column: self.column().0, if_exists: false },
            11 | 12 => {
                let (column, column_type) = self.column();
                Command::RenameColumn { table, column, to: self.column_name(column_type) }
            }
            _ => match model.find(&table) {
                Some(at) => self.drop_partitions(&model.tables[at]),
                None => Command::DropPartitions { table, partitions: vec![self.now] },
            },
        }
    }

    fn create_table(&mut self, name: String) -> Command {
        let mut columns: Vec<(String, ColumnType)> = Vec::new();
        for _ in 0..self.rng.usize(..6) {
            let column = self.column();
            if !columns.iter().any(|c| c.0.eq_ignore_ascii_case(&column.0)) {
                columns.push(column);
            }
        }
        let mut designated = None;
        if self.rng.u32(..6) != 0 || columns.is_empty() {
            designated = Some("timestamp".to_owned());
            let at = self.rng.usize(..=columns.len());
            let unit = [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos][self.rng.usize(..3)];
            columns.insert(at, ("timestamp".to_owned(), ColumnType::Timestamp(unit)));
        }
        let by = [
            PartitionBy::None,
            PartitionBy::Hour,
            PartitionBy::Day,
            PartitionBy::Week,
            PartitionBy::Month,
            PartitionBy::Year,
        ];
        let partition_by = if designated.is_some() { by[self.rng.usize(..6)] } else { PartitionBy::None };
        let mut dedup = Vec::new();
        if designated.is_some() && !self.plan.has_large_commits && self.rng.u32(..3) == 0 {
            // Floating point has equal values with different bits, which the model does not support.
            let is_exact = |t: ColumnType| !matches!(t, ColumnType::Float | ColumnType::Double);
            let keys = columns.iter().filter(|(name, t)| name == "timestamp" || is_exact(*t) && self.rng.bool());
            dedup = keys.map(|(name, _)| name.clone()).collect();
        }
        let lag_us = if designated.is_some() { self.lag() } else { None };
        Command::CreateTable(CreateTable {
            name,
            columns,
            designated,
            partition_by,
            ttl: (partition_by != PartitionBy::None && self.rng.u32(..4) == 0).then(|| self.ttl()),
            lag_us,
            dedup,
            if_not_exists: self.rng.bool(),
        })
    }

    /// Returns a lag between none and the length of a partition.
    fn lag(&mut self) -> Option<u64> {
        [None, None, Some(0), Some(1_000), Some(1_000_000), Some(600_000_000), Some(86_400_000_000)]
            [self.rng.usize(..7)]
    }

    fn ttl(&mut self) -> Ttl {
        let ttls = [Ttl::Hours(1), Ttl::Hours(24), Ttl::Hours(7 * 24), Ttl::Months(1), Ttl::Months(12)];
        ttls[self.rng.usize(..ttls.len())]
    }

    fn rows(&mut self, schemas: &Schemas) -> Rows {
        let table = self.table_name();
        let known = schemas.0.find(&table).map(|at| &schemas.0.tables[at].schema);
        let mut columns: Vec<(String, ColumnType)> = Vec::new();
        for column in known.into_iter().flat_map(|s| &s.columns).filter(|c| !c.is_designated) {
            if self.rng.u32(..5) != 0 {
                columns.push((column.name.clone(), column.column_type));
            }
        }
        if self.rng.u32(..8) == 0 {
            self.rng.shuffle(&mut columns);
        }
        if known.is_none() || self.rng.u32(..12) == 0 {
            let column = self.column();
            if !columns.iter().any(|c| c.0.eq_ignore_ascii_case(&column.0)) {
                columns.push(column);
            }
        }
        let mut count = self.rng.usize(1..=self.plan.batch_rows_max);
        match self.rng.u32(..200) {
            0 => count = 0,
            1 | 2 => count *= 20,
            3..10 if self.plan.has_large_commits => count = self.rng.usize(1000..80_000),
            _ => {}
        }
        let has_time = known.is_none_or(|s| s.designated().is_some()) != (self.rng.u32(..100) == 0);
        let timestamps = has_time.then(|| {
            let unit = [TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos][self.rng.usize(..3)];
            (unit, self.times(count).into_iter().map(|ns| ns.div_euclid(SECOND / unit.per_second())).collect())
        });
        let styles: Vec<Style> = columns.iter().map(|_| Style::draw(&mut self.rng)).collect();
        let cells: Vec<Row> = (0..count)
            .map(|row| {
                let cells = columns.iter().zip(&styles);
                Arc::new(
                    cells.map(|((_, column_type), style)| cell(&mut self.rng, *column_type, *style, row)).collect(),
                )
            })
            .collect();
        let mut rows = Rows { table, columns, cells, timestamps };
        // Like INSERT: the designated timestamp is one of the columns.
        if let (Some(designated), Some((unit, times))) = (known.and_then(|s| s.designated()), &rows.timestamps)
            && designated.1 == *unit
            && self.rng.bool()
        {
            rows.columns.push(("TimeStamp".to_owned(), ColumnType::Timestamp(*unit)));
            rows.cells.iter_mut().zip(times).for_each(|(row, ts)| Arc::make_mut(row).push(Cell::Int((*ts).into())));
            rows.timestamps = None;
        }
        rows
    }

    fn times(&mut self, count: usize) -> Vec<i64> {
        let step = [1, 1_000, SECOND / 10, SECOND, 60 * SECOND, 3600 * SECOND][self.rng.usize(..6)];
        let way = if self.plan.falls_everywhere && self.rng.u32(..4) != 0 { 11 } else { self.rng.u32(..13) };
        let base = match way {
            0..6 => self.now,
            6 | 7 => self.now - self.rng.i64(0..3600 * SECOND),
            8 => self.now - self.rng.i64(0..60 * 86_400) * SECOND,
            // One of a few moments, so that many rows have equal times.
            9 => 1_700_000_000 * SECOND + self.rng.i64(0..5) * SECOND,
            10 => -self.rng.i64(0..1_000_000) * SECOND,
            11 => 1_699_920_000 * SECOND,
            _ => 1_700_000_000 * SECOND,
        };
        let times: Vec<i64> = (0..count as i64)
            .map(|n| match way {
                0..5 => base + n * step,
                5 | 9 | 12 => base,
                6 => base - n * step,
                11 => base + self.rng.i64(0..3 * 86_400 * SECOND),
                _ => base + self.rng.i64(0..=step.saturating_mul(10)),
            })
            .collect();
        if way < 5 {
            self.now = (base + count as i64 * step).min(1_900_000_000 * SECOND);
        }
        times
    }
}

/// The tables without rows, after the previous commits of a group.
struct Schemas(Model);

impl Schemas {
    fn of(model: &Model) -> Schemas {
        let tables = model.tables.iter().map(|t| Table { schema: t.schema.clone(), rows: Vec::new() });
        Schemas(Model { tables: tables.collect() })
    }
}
