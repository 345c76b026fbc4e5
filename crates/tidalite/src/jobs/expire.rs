//! Drops partitions that are older than the TTL of their table.
//!
//! The age of a partition is relative to the newest row or the clock, whichever is earlier: rows in the future count as
//! of now. With a wrong clock, one row with its time would expire all other rows. The newest row of a table may thus jump
//! over empty partitions: then the expired partitions are dropped only if the row is still the newest after
//! `ttl_jump_wait`. A warning is logged at once.

use super::Jobs;
use super::observations::Jumps;
use crate::Result;
use crate::writer::Work;
use futures::executor::block_on;
use std::time::{Duration, Instant};
use tidalite_storage::TableSnapshot;
use tidalite_storage::expiry::{Expired, expired};
use tidalite_types::{Command, TableId};

impl Jumps {
    /// Returns true if the expired partitions of a table may be dropped. The first refusal calls `warn`.
    fn may_go(&mut self, table: TableId, is_jump: bool, at: Instant, wait: Duration, warn: impl FnOnce()) -> bool {
        if !is_jump || wait.is_zero() {
            self.0.remove(&table);
            return true;
        }
        let since = self.0.get(&table).copied();
        if since.is_none() {
            self.0.insert(table, at);
            warn();
        }
        since.is_some_and(|since| at.saturating_duration_since(since) >= wait)
    }
}

impl Jobs {
    /// Drops expired partitions. Returns the commands and their results.
    pub(crate) fn expire(&mut self, now: i64) -> Vec<(Command, Result<()>)> {
        self.expire_where(now, |_, _| true)
    }

    /// Expires like [`Jobs::expire`], but delays tables whose newest row jumped; `at` is `now` of a monotonic clock.
    pub(crate) fn expire_with_care(&mut self, now: i64, at: Instant) -> Vec<(Command, Result<()>)> {
        let wait = self.shared.config.ttl_jump_wait;
        let mut jumps = std::mem::take(&mut self.jumps);
        let done = self.expire_where(now, |table, expired| {
            jumps.may_go(table.id, expired.is_jump, at, wait, || {
                tracing::warn!(
                    table = table.schema.name,
                    partitions = expired.starts.len(),
                    wait_seconds = wait.as_secs(),
                    "empty partitions separate the newest row from all others, which are older than the TTL; the older \
                     partitions are dropped after the wait (setting ttl.jump_wait): delete the row if its time is wrong"
                );
            })
        });
        let tables = self.shared.tables.read();
        jumps.0.retain(|id, _| tables.get(*id).is_some());
        drop(tables);
        self.jumps = jumps;
        done
    }

    fn expire_where(
        &mut self,
        now: i64,
        mut may_go: impl FnMut(&TableSnapshot, &Expired) -> bool,
    ) -> Vec<(Command, Result<()>)> {
        self.expired_at = Some(Instant::now());
        let mut done = Vec::new();
        for table in self.shared.tables.all().1 {
            let name = &table.schema.name;
            let expired = match expired(&table, now) {
                Ok(expired) => expired,
                Err(error) => {
                    tracing::warn!(table = name, %error, "could not tell which partitions are too old");
                    continue;
                }
            };
            if !may_go(&table, &expired) || expired.starts.is_empty() {
                continue;
            }
            let count = expired.starts.len();
            let drop = Command::DropPartitions { table: name.clone(), partitions: expired.starts };
            let answer = block_on(self.ask(Work::Command(drop.clone())));
            match &answer {
                Ok(()) => tracing::info!(table = name, partitions = count, "dropped what is older than the TTL"),
                Err(error) => tracing::warn!(table = name, %error, "could not drop what is older than the TTL"),
            }
            done.push((drop, answer));
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upkeep_tests::{ask, config, run};
    use crate::{Database, DatabaseConfig};
    use std::sync::Arc;
    use tidalite_storage::fs::faulty::SimFs;

    const DAY: i64 = 86_400_000_000_000;
    /// 2024-03-01T00:00:00Z.
    const MARCH: i64 = 19_783 * DAY;

    fn count(db: &Database) -> usize {
        ask(db, "SELECT ts FROM t").unwrap().len()
    }

    #[test]
    fn one_row_of_a_wrong_clock_condemns_nothing_at_once() {
        let wait = Duration::from_secs(3600);
        let config = DatabaseConfig { ttl_jump_wait: wait, ..config() };
        let db = Database::open_on(Arc::new(SimFs::new(1)), config, None).unwrap();
        run(&db, "CREATE TABLE t (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY TTL 3 DAYS");
        run(&db, "INSERT INTO t VALUES ('2024-02-27'), ('2024-02-28'), ('2024-02-29T12:00')");
        let start = Instant::now();
        let expire = |now: i64, after: Duration| db.jobs().expire_with_care(now, start + after).len();
        assert_eq!(expire(MARCH, Duration::ZERO), 0, "nothing is too old");
        // A clock that is a year ahead, and a row with its time.
        run(&db, "INSERT INTO t VALUES ('2025-02-28')");
        assert_eq!((expire(MARCH, Duration::ZERO), count(&db)), (0, 4), "the clock knows better");
        assert_eq!((expire(MARCH + 365 * DAY, Duration::ZERO), count(&db)), (0, 4));
        assert_eq!((expire(MARCH + 365 * DAY, wait / 2), count(&db)), (0, 4));
        // The row is deleted; the next one starts a separate wait.
        run(&db, "DELETE FROM t WHERE ts > '2025'");
        assert_eq!((expire(MARCH + 365 * DAY, wait), count(&db)), (0, 3));
        run(&db, "INSERT INTO t VALUES ('2025-02-28')");
        assert_eq!((expire(MARCH + 365 * DAY, wait), count(&db)), (0, 4));
        assert_eq!((expire(MARCH + 365 * DAY, 2 * wait), count(&db)), (1, 1), "it stayed");
    }

    #[test]
    fn time_that_passes_is_no_jump() {
        let config = DatabaseConfig { ttl_jump_wait: Duration::from_secs(3600), ..config() };
        let db = Database::open_on(Arc::new(SimFs::new(1)), config, None).unwrap();
        run(&db, "CREATE TABLE t (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY TTL 1 HOUR");
        for day in 1..6 {
            run(&db, &format!("INSERT INTO t VALUES ('2024-02-0{day}T02:00')"));
            db.jobs().expire_with_care(MARCH, Instant::now());
            assert_eq!(count(&db), 1, "day {day}");
        }
    }
}
