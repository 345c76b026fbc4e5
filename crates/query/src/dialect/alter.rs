//! ALTER TABLE.

use super::Input;
use crate::Result;
use crate::statement::{Partitions, Statement};
use datafusion::sql::sqlparser::tokenizer::Token;
use tidalite_types::Command;

impl Input<'_> {
    pub(super) fn alter(&mut self) -> Result<Statement> {
        self.expect("alter")?;
        if self.sees("materialized") {
            return self.alter_view();
        }
        self.expect("table")?;
        let table = self.table_name()?.text;
        let commands = if self.take("add") {
            self.take("column");
            let mut if_not_exists = self.take_all(&["if", "not", "exists"]);
            self.each(|input| {
                if input.takes_action("add") {
                    if_not_exists = input.take_all(&["if", "not", "exists"]);
                }
                let column = input.name("a column name")?.text;
                let column_type = input.column_type()?;
                input.column_options()?;
                Ok(Command::AddColumn { table: table.clone(), column, column_type, if_not_exists })
            })?
        } else if self.take_all(&["set", "param"]) {
            match self.settings()? {
                Some(lag_us) => vec![Command::SetLag { table, lag_us }],
                None => return Ok(Statement::Nothing { tag: "ALTER TABLE" }),
            }
        } else if self.take("seal") {
            return Ok(Statement::Seal { table });
        } else if self.take_all(&["drop", "partition"]) {
            return self.drop_partitions(table);
        } else if self.take("drop") {
            self.take("column");
            let mut if_exists = self.take_all(&["if", "exists"]);
            self.each(|input| {
                if input.takes_action("drop") {
                    if_exists = input.take_all(&["if", "exists"]);
                }
                let column = input.name("a column name")?.text;
                input.drop_behavior();
                Ok(Command::DropColumn { table: table.clone(), column, if_exists })
            })?
        } else if self.take_all(&["set", "ttl"]) {
            let ttl = self.ttl()?;
            vec![Command::SetTtl { table, ttl }]
        } else if self.take_all(&["dedup", "enable"]) {
            vec![Command::SetDedup { table, keys: self.upsert_keys()? }]
        } else if self.take_all(&["dedup", "disable"]) {
            vec![Command::SetDedup { table, keys: Vec::new() }]
        } else if self.take_all(&["rename", "to"]) {
            vec![Command::RenameTable { table, to: self.table_name()?.text }]
        } else if self.take("rename") {
            self.take("column");
            self.each(|input| {
                let column = input.name("a column name")?.text;
                input.expect("to")?;
                Ok(Command::RenameColumn { table: table.clone(), column, to: input.name("a column name")?.text })
            })?
        } else {
            return Err(self.expected("ADD, DROP, RENAME, SET TTL, SET PARAM, SEAL or DEDUP"));
        };
        Ok(Statement::Commands { tag: "ALTER TABLE", commands })
    }

    /// Takes `ADD COLUMN` or `DROP COLUMN` in a list, or the verb alone before IF.
    fn takes_action(&mut self, verb: &str) -> bool {
        self.take_all(&[verb, "column"]) || self.sees_at(1, "if") && self.take(verb)
    }

    fn each(&mut self, mut one: impl FnMut(&mut Self) -> Result<Command>) -> Result<Vec<Command>> {
        let mut commands = vec![one(self)?];
        while self.take_symbol(&Token::Comma) {
            commands.push(one(self)?);
        }
        Ok(commands)
    }

    fn drop_partitions(&mut self, table: String) -> Result<Statement> {
        if self.take("list") {
            let mut names = vec![self.string("the name of a partition in quotes")?];
            while self.take_symbol(&Token::Comma) {
                names.push(self.string("the name of a partition in quotes")?);
            }
            return Ok(Statement::DropPartitions { table, which: Partitions::List(names) });
        }
        if self.take("where") {
            let predicate = self.parser.parse_expr().map_err(|e| super::from_parser(&e, &self.words))?;
            return Ok(Statement::DropPartitions {
                table,
                which: Partitions::Where(Box::new(predicate), self.words.clone()),
            });
        }
        Err(self.expected("LIST or WHERE"))
    }
}
