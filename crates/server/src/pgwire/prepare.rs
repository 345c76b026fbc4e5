//! Execution of PREPARE, EXECUTE and EXPLAIN EXECUTE.
//!
//! SQL and the extended protocol share the names of prepared statements, as in PostgreSQL. The values of EXECUTE are
//! expressions; their results are bound like the values of a Bind message, never as SQL.

use super::parameters::decode;
use super::prepare_command::{Execute, Prepare};
use super::prepared::{Prepared, What, first_word};
use super::reply::Report;
use super::session::{Session, Step, reported};
use super::types;
use super::values::{Cells, canonical};
use futures::StreamExt;
use std::sync::{Arc, OnceLock};
use tidalite::types::pg_type;
use tidalite::{Parameter, Response};

impl Session<'_> {
    pub(super) async fn prepare(&mut self, asked: &Prepare) -> Step {
        self.check_transaction()?;
        let is_one = matches!(What::of(&asked.sql)?, What::Statement) && first_word(&asked.sql) != "copy";
        if !is_one {
            return Err(Report::error("42601", "only queries and changes of rows can be prepared").into());
        }
        let unknown = |name: &String| Report::error("42704", format!("type \"{name}\" does not exist"));
        let oid = |name: &String| match name.as_str() {
            "unknown" => Ok(0),
            name_of => pg_type::by_sql_name(name_of).map(|found| found.oid).ok_or_else(|| unknown(name)),
        };
        let oids = asked.types.iter().map(oid).collect::<Result<Vec<u32>, Report>>()?;
        let prepared = self.new_prepared(&asked.name, &asked.sql, What::Statement, oids)?;
        // PREPARE reports the errors of the statement, not EXECUTE.
        self.describe(&prepared).await?;
        self.statements.insert(asked.name.clone(), Arc::new(prepared));
        self.complete("PREPARE");
        Ok(())
    }

    /// Returns the statement to execute, and its values.
    pub(super) async fn executed(&mut self, asked: &Execute) -> Step<(Arc<Prepared>, Vec<Parameter>)> {
        self.check_transaction()?;
        let prepared = self.statement_asked_for(asked).await?;
        let oids = prepared.all_oids();
        let given = asked.values.len();
        if given != oids.len() {
            let (name, wanted) = (&asked.name, oids.len());
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            let hint = format!("expected {wanted} parameters but got {given}");
            return Err(Report::error("42601", message).with_hint(hint).into());
        }
        let values = self.values(&asked.values).await?;
        let decoded =
            values.iter().zip(&oids).enumerate().map(|(i, (value, oid))| decode(i + 1, *oid, false, value.as_deref()));
        Ok((prepared, decoded.collect::<Result<_, _>>()?))
    }

    /// Returns the statement to execute after describing it.
    pub(super) async fn statement_asked_for(&mut self, asked: &Execute) -> Step<Arc<Prepared>> {
        let prepared = self.prepared(&asked.name)?;
        if !matches!(prepared.what, What::Statement) {
            return Err(Report::error("42601", "only queries and changes of rows can be executed").into());
        }
        self.describe(&prepared).await?;
        if asked.explain.is_empty() {
            return Ok(prepared);
        }
        let explained = Prepared {
            sql: format!("{}{}", asked.explain, prepared.sql),
            plainer: None,
            what: What::Statement,
            oids: prepared.all_oids(),
            described: OnceLock::new(),
            _held: self.held(prepared.sql.len())?,
        };
        self.describe(&explained).await?;
        Ok(Arc::new(explained))
    }

    /// Returns the values of expressions as text.
    async fn values(&mut self, expressions: &[String]) -> Step<Vec<Option<Vec<u8>>>> {
        if expressions.is_empty() {
            return Ok(Vec::new());
        }
        // In parentheses, an expression cannot contain a comma of the list.
        let text = format!("SELECT ({})", expressions.join("), ("));
        let mut out = Vec::with_capacity(expressions.len());
        if let Response::Rows(mut rows) = self.start("", &text, Vec::new()).await? {
            let columns = types::columns(&rows.columns, &rows.schema);
            while let Some(batch) = rows.stream.next().await {
                let batch = batch.map_err(|error| reported("", &error))?;
                for (column, array) in columns.iter().zip(batch.columns()).filter(|_| batch.num_rows() > 0) {
                    let array = canonical(column, array).map_err(|error| reported("", &error))?;
                    let cells = Cells::new(column.pg_type, column.is_ipv4, array.as_ref());
                    let mut text = Vec::new();
                    cells.push_text(0, &mut text);
                    out.push((!cells.is_null(0)).then_some(text));
                }
            }
        }
        Ok(out)
    }
}
