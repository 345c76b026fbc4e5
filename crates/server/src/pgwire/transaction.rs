//! Transaction blocks: explicit ones (BEGIN), and implicit ones around several statements of one message.
//!
//! A block runs its statements in a [`Transaction`] of the database, which begins with the first statement. Invariant:
//! a session whose status is not IDLE has a block. An implicit block covers one message of statements, or the messages
//! up to a Sync; the status of its session stays IDLE.

use super::block::{Block, Savepoint};
use super::command::Variables;
use super::isolation::{LEVELS, Level, Modes};
use super::reply::Report;
use super::session::{FAILED, IDLE, OPEN, Session, Step, reported};
use std::collections::BTreeSet;
use tidalite::Transaction;

impl Session<'_> {
    /// Begins a block by BEGIN.
    pub(super) fn begin(&mut self, modes: Modes) -> Result<(), Report> {
        if self.transaction == OPEN {
            self.out.report(&Report::warning("25001", "there is already a transaction in progress"));
        }
        let mut block = self.block.take().unwrap_or_else(|| self.new_block(false));
        let applied = block.apply(modes);
        block.is_implicit = false;
        self.block = Some(block);
        self.transaction = OPEN;
        applied
    }

    fn new_block(&self, is_implicit: bool) -> Block {
        let level = Level::by_name(&self.variables.value("default_transaction_isolation"));
        Block {
            transaction: None,
            level: level.unwrap_or(LEVELS[1]),
            is_read_only: self.variables.is_read_only,
            is_implicit,
            before: self.variables.clone(),
            local: BTreeSet::new(),
            savepoints: Vec::new(),
        }
    }

    /// Begins a block around statements that belong together, unless there is one.
    pub(super) fn begin_implicit(&mut self) {
        if self.block.is_none() {
            self.block = Some(self.new_block(true));
        }
    }

    fn is_implicit(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.is_implicit)
    }

    /// Commits an implicit block, if there is one.
    pub(super) async fn end_implicit(&mut self) -> Step {
        if self.is_implicit() { self.commit_block().await } else { Ok(()) }
    }

    /// Returns true if statements may not write.
    pub(super) fn is_read_only(&self) -> bool {
        match &self.block {
            Some(block) => block.is_read_only,
            None => self.variables.is_read_only,
        }
    }

    /// The transaction that statements go to; `None` when each commits by itself.
    pub(super) fn open_transaction(&mut self) -> Option<Transaction> {
        let database = &self.shared.database;
        self.block.as_mut().map(|block| block.transaction(database).clone())
    }

    /// The same, once a statement has begun it.
    pub(super) fn begun_transaction(&self) -> Option<Transaction> {
        self.block.as_ref()?.transaction.clone()
    }

    /// Leaves an implicit block without changes, for a statement that commits by itself.
    pub(super) fn leave_fresh_block(&mut self) -> bool {
        let leaves = self.is_implicit();
        if leaves {
            self.block = None;
        }
        leaves
    }

    /// Returns true if a statement of the block has run.
    pub(super) fn has_begun(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.transaction.is_some())
    }

    /// Executes COMMIT; returns the command tag.
    pub(super) async fn commit(&mut self, chains: bool) -> Step<&'static str> {
        let modes = self.chained(chains, "COMMIT AND CHAIN")?;
        if self.transaction == FAILED {
            self.roll_back_block();
            self.chain(modes);
            return Ok("ROLLBACK");
        }
        if self.transaction == IDLE {
            self.out.report(&no_transaction());
        }
        self.commit_block().await?;
        self.chain(modes);
        Ok("COMMIT")
    }

    /// Executes ROLLBACK; returns the command tag.
    pub(super) fn roll_back(&mut self, chains: bool) -> Result<&'static str, Report> {
        let modes = self.chained(chains, "ROLLBACK AND CHAIN")?;
        if self.transaction == IDLE {
            self.out.report(&no_transaction());
        }
        self.roll_back_block();
        self.chain(modes);
        Ok("ROLLBACK")
    }

    /// The modes that the next transaction has, where one follows at once.
    fn chained(&self, chains: bool, what: &str) -> Result<Option<Modes>, Report> {
        if !chains {
            return Ok(None);
        }
        match self.block.as_ref().filter(|_| self.transaction != IDLE) {
            Some(block) => Ok(Some(Modes { level: Some(block.level), is_read_only: Some(block.is_read_only) })),
            None => Err(Report::error("25P01", format!("{what} can only be used in transaction blocks"))),
        }
    }

    fn chain(&mut self, modes: Option<Modes>) {
        if let Some(modes) = modes {
            let mut block = self.new_block(false);
            // Nothing has run in it that could refuse them.
            let _ = block.apply(modes);
            (self.block, self.transaction) = (Some(block), OPEN);
        }
    }

    async fn commit_block(&mut self) -> Step {
        self.transaction = IDLE;
        self.portals.clear();
        self.cursors.retain(|_, cursor| cursor.is_held());
        let Some(block) = self.block.take() else { return Ok(()) };
        if let Some(transaction) = &block.transaction
            && let Err(error) = transaction.commit().await
        {
            self.restore(block.before);
            return Err(reported("", &error).into());
        }
        for name in &block.local {
            let before = block.before.given(name);
            if let Ok(Some((name, value))) = self.variables.set(name, before.as_deref()) {
                self.out.parameter(name, &value);
            }
        }
        Ok(())
    }

    /// Rolls back and removes the block, if there is one.
    pub(super) fn roll_back_block(&mut self) {
        self.transaction = IDLE;
        self.portals.clear();
        self.cursors.retain(|_, cursor| cursor.is_held());
        if let Some(block) = self.block.take() {
            block.transaction.iter().for_each(Transaction::roll_back);
            self.restore(block.before);
        }
    }

    fn restore(&mut self, before: Variables) {
        for (name, value) in self.variables.restore(before) {
            self.out.parameter(name, &value);
        }
    }

    /// Handles an error: an explicit block is aborted until its end, an implicit block ends.
    pub(super) fn fail_block(&mut self) {
        if self.transaction == OPEN {
            self.transaction = FAILED;
        } else if self.is_implicit() {
            self.roll_back_block();
        }
    }

    pub(super) fn savepoint(&mut self, name: &str) -> Result<&'static str, Report> {
        self.in_block("SAVEPOINT")?.savepoint(name).map_err(|error| reported("", &error))?;
        let variables = self.variables.clone();
        if let Some(block) = &mut self.block {
            let is_read_only = block.is_read_only;
            block.savepoints.push(Savepoint { name: name.to_owned(), is_read_only, variables });
        }
        Ok("SAVEPOINT")
    }

    pub(super) fn release(&mut self, name: &str) -> Result<&'static str, Report> {
        self.in_block("RELEASE SAVEPOINT")?.release(name).map_err(|error| reported("", &error))?;
        if let Some(block) = &mut self.block
            && let Some(at) = block.savepoints.iter().rposition(|known| known.name == name)
        {
            // As in PostgreSQL, READ ONLY that was set after the savepoint ends with the savepoint.
            block.is_read_only = block.savepoints[at].is_read_only;
            block.savepoints.truncate(at);
        }
        Ok("RELEASE")
    }

    pub(super) fn roll_back_to(&mut self, name: &str) -> Result<&'static str, Report> {
        self.in_block("ROLLBACK TO SAVEPOINT")?.roll_back_to(name).map_err(|error| reported("", &error))?;
        self.transaction = OPEN;
        let Some(block) = &mut self.block else { return Ok("ROLLBACK") };
        if let Some(at) = block.savepoints.iter().rposition(|known| known.name == name) {
            block.savepoints.truncate(at + 1);
            block.is_read_only = block.savepoints[at].is_read_only;
            let variables = block.savepoints[at].variables.clone();
            self.restore(variables);
        }
        Ok("ROLLBACK")
    }

    fn in_block(&mut self, what: &str) -> Result<Transaction, Report> {
        let outside = || Report::error("25P01", format!("{what} can only be used in transaction blocks"));
        if self.transaction == IDLE {
            return Err(outside());
        }
        self.open_transaction().ok_or_else(outside)
    }

    /// SET TRANSACTION.
    pub(super) fn set_transaction(&mut self, modes: Modes) -> Result<(), Report> {
        match &mut self.block {
            Some(block) => block.apply(modes),
            None => {
                let message = "SET TRANSACTION can only be used in transaction blocks";
                self.out.report(&Report::warning("25P01", message));
                Ok(())
            }
        }
    }

    /// Notes that a setting holds until the end of the block; false outside of one.
    pub(super) fn note_local(&mut self, name: &str) -> bool {
        match &mut self.block {
            Some(block) => {
                block.local.insert(name.to_ascii_lowercase());
                true
            }
            None => {
                let message = "SET LOCAL can only be used in transaction blocks";
                self.out.report(&Report::warning("25P01", message));
                false
            }
        }
    }

    /// Returns the value of a setting that belongs to the transaction.
    pub(super) fn transaction_setting(&self, name: &str) -> Option<String> {
        let (default, is_level) = match name {
            "transaction_isolation" | "transaction isolation level" => ("default_transaction_isolation", true),
            "transaction_read_only" => ("default_transaction_read_only", false),
            _ => return None,
        };
        Some(match (&self.block, is_level) {
            (Some(block), true) => block.level.name.to_owned(),
            (Some(block), false) => if block.is_read_only { "on" } else { "off" }.to_owned(),
            (None, _) => self.variables.value(default),
        })
    }
}

fn no_transaction() -> Report {
    Report::warning("25P01", "there is no transaction in progress")
}
