//! Finds out that the server does not do what it is there for although its threads live.
//!
//! Every few seconds a real small statement goes through planner and executor, if others did since the last one, and a
//! request without content through the thread of commits. Either has to be answered by its deadline. A question that is
//! not answered stays open; the next is asked when it is.

use crate::stop::Stop;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use futures::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidalite::{Database, Error, ErrorKind, Frame, QueryOptions, Response, Result};

/// Statements of this client are not listed.
pub const CLIENT: &str = tidalite::WATCHDOG;

/// A frame makes the statement one that no kept plan answers.
const STATEMENT: &str = "SELECT sum(x) FROM tidalite_watchdog WHERE x > 0";

#[derive(Debug)]
pub struct Watchdog {
    interval: Duration,
    deadline: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    statement: Probe,
    commit: Probe,
}

/// One kind of question.
#[derive(Debug, Default)]
struct Probe {
    /// When the open question was asked.
    asked: Option<Instant>,
    took: Duration,
    /// Why the last question failed.
    failure: Option<String>,
}

/// What does not progress, and since when.
#[derive(Debug, Default)]
pub struct Problem {
    pub statements: Option<String>,
    pub commits: Option<String>,
}

impl Probe {
    fn problem(&self, what: &str, deadline: Duration) -> Option<String> {
        let waited = self.asked.map(|asked| asked.elapsed()).filter(|waited| *waited > deadline);
        match waited {
            Some(waited) => Some(format!("{what} do not progress: one is not answered for {} s", waited.as_secs())),
            None => self.failure.as_ref().map(|why| format!("{what} do not progress: {why}")),
        }
    }
}

impl Watchdog {
    #[must_use]
    pub fn new(interval: Duration, deadline: Duration) -> Watchdog {
        Watchdog { interval, deadline, state: Mutex::default() }
    }

    #[must_use]
    pub fn problem(&self) -> Problem {
        let state = self.lock();
        Problem {
            statements: state.statement.problem("statements", self.deadline),
            commits: state.commit.problem("commits", self.deadline),
        }
    }

    /// How long the last statement took.
    #[must_use]
    pub fn last_took(&self) -> Duration {
        self.lock().statement.took
    }

    /// Asks until the stop.
    pub async fn watch(&self, database: &Database, mut stop: Stop) {
        if self.interval.is_zero() {
            return stop.wait().await;
        }
        let (mut statement_stop, mut commit_stop) = (stop.clone(), stop);
        let statements = async {
            let mut seen = 0;
            while self.pause(&mut statement_stop).await {
                let begun = database.statements_begun();
                // Where nobody asks nothing can be stuck but what was stuck before.
                if begun != seen || self.lock().statement.failure.is_some() {
                    let answer = statement(database, self.deadline);
                    self.ask(|state| &mut state.statement, answer, &mut statement_stop).await;
                    seen = database.statements_begun();
                }
            }
        };
        let commits = async {
            while self.pause(&mut commit_stop).await {
                self.ask(|state| &mut state.commit, database.probe_commits(), &mut commit_stop).await;
            }
        };
        tokio::join!(statements, commits);
    }

    /// Waits for the next question; false at the stop.
    async fn pause(&self, stop: &mut Stop) -> bool {
        tokio::select! {
            () = tokio::time::sleep(self.interval) => true,
            () = stop.wait() => false,
        }
    }

    async fn ask(
        &self,
        probe: fn(&mut State) -> &mut Probe,
        answer: impl Future<Output = Result<()>>,
        stop: &mut Stop,
    ) {
        let asked = Instant::now();
        probe(&mut self.lock()).asked = Some(asked);
        let answer = tokio::select! {
            answer = answer => answer,
            () = stop.wait() => return,
        };
        let mut state = self.lock();
        let probe = probe(&mut state);
        (probe.asked, probe.took) = (None, asked.elapsed());
        let failure = answer.err().map(|error| error.message);
        if let (Some(why), None) = (&failure, &probe.failure) {
            tracing::error!(why, "the watchdog's question failed");
        }
        probe.failure = failure;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn statement(database: &Database, deadline: Duration) -> Result<()> {
    let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Int64, false)]));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let rows = RecordBatch::try_new(schema.clone(), vec![values]);
    let rows = rows.map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
    let options = QueryOptions {
        timeout: Some(deadline),
        client: CLIENT.to_owned(),
        frames: vec![Frame::new("tidalite_watchdog", &schema, &[rows], None)?],
        ..QueryOptions::default()
    };
    let answered = async {
        let Response::Rows(mut rows) = database.execute(STATEMENT, options).await? else {
            return Err(Error::new(ErrorKind::Internal, "a query gave no rows"));
        };
        while let Some(batch) = rows.stream.next().await {
            batch?;
        }
        Ok(())
    };
    // The threads that stop statements at their timeout may be those that are stuck.
    let late = || Error::new(ErrorKind::Unavailable, format!("a small one took more than {} s", deadline.as_secs()));
    tokio::time::timeout(deadline, answered).await.unwrap_or_else(|_| Err(late()))
}
