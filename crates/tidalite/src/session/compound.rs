//! Statements of several steps: queries whose WITH changes rows, MERGE, and commands on several objects.
//!
//! All steps read the tables as of the start of the statement. Their changes form one commit: the commit of the
//! enclosing transaction, or of a transaction of their own. Later steps read the rows that a step returns as a table in
//! memory.

use super::{ATTEMPTS, Changed, Host, Session};
use crate::transaction::{FrozenHost, Isolation, TransactionHost};
use crate::{Error, ErrorKind, Result, SqlState};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::collections::HashSet;
use std::sync::Arc;
use tidalite_query::statement::{Compound, Delete, Step};
use tidalite_query::{CancelToken, Frame, QueryResult, Statement, renamed};

/// Size limit of rows that steps return, and of the result if it is held until the commit.
const ROWS_BYTES_MAX: usize = 512 << 20;

pub(super) fn run<'a>(
    session: &'a Session,
    compound: &'a Compound,
    cancel: &'a CancelToken,
) -> BoxFuture<'a, Result<Changed>> {
    async move {
        if session.host.is_transaction() {
            return steps(session, session.host.clone(), compound, cancel).await;
        }
        for _ in 0..ATTEMPTS {
            cancel.check()?;
            match alone(session, compound, cancel).await {
                // Another session changed the same rows: the statement restarts, as an UPDATE does.
                Err(error) if error.code == Some(SqlState::SERIALIZATION_FAILURE) => {}
                done => return done,
            }
        }
        let message = format!("rows were changed by others {ATTEMPTS} times while the statement ran");
        Err(Error::new(ErrorKind::Conflict, message).with_code(SqlState::SERIALIZATION_FAILURE))
    }
    .boxed()
}

/// Runs the statement as a separate transaction.
async fn alone(session: &Session, compound: &Compound, cancel: &CancelToken) -> Result<Changed> {
    let memory = &session.shared.transactions;
    let own = Arc::new(TransactionHost::new(session.host.clone(), Isolation::RepeatableRead, memory));
    own.begin_statement()?;
    let changed = match steps(session, own.clone(), compound, cancel).await? {
        Changed::Rows(result) => Changed::Rows(held(result).await?),
        done => done,
    };
    own.commit(&session.shared.changing).await?;
    Ok(changed)
}

async fn steps(session: &Session, host: Arc<dyn Host>, compound: &Compound, cancel: &CancelToken) -> Result<Changed> {
    let host: Arc<dyn Host> = Arc::new(FrozenHost::new(host));
    let (mut frames, mut counted, mut answer) = (session.frames.to_vec(), 0, None);
    for step in &compound.steps {
        let part = Session {
            shared: session.shared.clone(),
            host: host.clone(),
            started: session.started,
            frames: frames.clone().into(),
            is_read_only: session.is_read_only,
            session: session.session.clone(),
        };
        match step {
            Step::Named { name, columns, statement } => {
                if let Changed::Rows(result) = part.step(statement, cancel).await? {
                    let (schema, rows) = (result.schema.clone(), gathered(result).await?);
                    let frame = Frame::new(name, &renamed(&schema, columns), &rows, None)?;
                    frames.insert(0, frame);
                }
            }
            Step::OnceEach(pairs) => once_each(&part, pairs, cancel).await?,
            Step::Counted(statement) => {
                if let Changed::Done { rows, .. } = part.step(statement, cancel).await? {
                    counted += rows;
                }
            }
            Step::Answer(statement) => answer = Some(part.step(statement, cancel).await?),
        }
    }
    Ok(answer.unwrap_or(Changed::Done { tag: compound.tag, rows: counted }))
}

impl Session {
    fn step<'a>(&'a self, statement: &'a Statement, cancel: &'a CancelToken) -> BoxFuture<'a, Result<Changed>> {
        async move {
            match statement {
                Statement::Query(query) => {
                    let result = self.engine()?.query(self.catalog(), query.clone(), cancel.clone()).await?;
                    Ok(Changed::Rows(result))
                }
                other => self.change(other.clone(), cancel).await,
            }
        }
        .boxed()
    }
}

/// Rejects a MERGE in which several rows change the same row.
async fn once_each(part: &Session, pairs: &Delete, cancel: &CancelToken) -> Result<()> {
    let (Some(query), seen) = (&pairs.query, super::change::find(part, &pairs.table)?) else { return Ok(()) };
    let engine = part.engine()?;
    let result = engine.addressed(part.catalog(), seen, &pairs.table.text, query, &[], cancel.clone()).await?;
    let (mut stream, mut known) = (result.stream, HashSet::new());
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        if !batch.column(0).as_primitive::<Int64Type>().values().iter().all(|address| known.insert(*address)) {
            let error = Error::new(ErrorKind::Invalid, "MERGE command cannot affect row a second time");
            let hint = "ensure that not more than one source row matches any one target row";
            return Err(error.with_code(SqlState::CARDINALITY_VIOLATION).with_hint(hint));
        }
    }
    Ok(())
}

async fn gathered(result: QueryResult) -> Result<Vec<RecordBatch>> {
    let (mut stream, mut batches, mut bytes) = (result.stream, Vec::new(), 0);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        bytes += batch.get_array_memory_size();
        if bytes > ROWS_BYTES_MAX {
            let limit = ROWS_BYTES_MAX >> 20;
            let message = format!("the rows of a part of a statement take more than {limit} MiB");
            return Err(Error::new(ErrorKind::Invalid, message).with_code(SqlState::PROGRAM_LIMIT_EXCEEDED));
        }
        batches.push(batch);
    }
    Ok(batches)
}

/// Returns the same rows, computed completely.
async fn held(result: QueryResult) -> Result<QueryResult> {
    let (columns, schema, timestamp) = (result.columns.clone(), result.schema.clone(), result.timestamp);
    let batches = gathered(result).await?;
    let stream = futures::stream::iter(batches.into_iter().map(Ok)).boxed();
    Ok(QueryResult { columns, schema, timestamp, stream })
}
