//! Detects statements and commits that make no progress.
//!
//! At each interval, an empty request passes through the commit thread, and a small statement through planner and executor
//! if clients ran statements since the last one. Each probe must be answered by the deadline. The next probe starts
//! after the previous one is answered.

use crate::stop::Stop;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use futures::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tidalite::{Database, Error, ErrorKind, Frame, QueryOptions, Response, Result};

/// Client name of the probes; the list of running statements omits this client.
pub const CLIENT: &str = tidalite::WATCHDOG;

/// The statement reads a frame, so that no cached plan answers it.
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

/// The state of one kind of probe.
#[derive(Debug, Default)]
struct Probe {
    /// Start of the current probe.
    started: Option<Instant>,
    took: Duration,
    /// The error of the last probe.
    failure: Option<String>,
}

/// The reasons for which statements or commits make no progress.
#[derive(Debug, Default)]
pub struct Problem {
    pub statements: Option<String>,
    pub commits: Option<String>,
}

impl Probe {
    fn problem(&self, what: &str, deadline: Duration) -> Option<String> {
        let waited = self.started.map(|started| started.elapsed()).filter(|waited| *waited > deadline);
        match waited {
            Some(waited) => Some(format!("{what} do not progress: a probe has waited for {} s", waited.as_secs())),
            None => self.failure.as_ref().map(|why| format!("{what} do not progress: {why}")),
        }
    }
}

impl Watchdog {
    /// Probes every `interval`, zero for never; each probe must be answered within `deadline`.
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

    /// Returns the duration of the last statement.
    #[must_use]
    pub fn last_took(&self) -> Duration {
        self.lock().statement.took
    }

    /// Sends probes until the stop signal.
    pub async fn watch(&self, database: &Database, mut stop: Stop) {
        if self.interval.is_zero() {
            return stop.wait().await;
        }
        let (mut statement_stop, mut commit_stop) = (stop.clone(), stop);
        let statements = async {
            let mut seen = 0;
            while self.pause(&mut statement_stop).await {
                let begun = database.statements_begun();
                // Without statements of clients, only an earlier failure needs another probe.
                if begun != seen || self.lock().statement.failure.is_some() {
                    let answer = statement(database, self.deadline);
                    self.probe(|state| &mut state.statement, answer, &mut statement_stop).await;
                    seen = database.statements_begun();
                }
            }
        };
        let commits = async {
            while self.pause(&mut commit_stop).await {
                self.probe(|state| &mut state.commit, database.probe_commits(), &mut commit_stop).await;
            }
        };
        tokio::join!(statements, commits);
    }

    /// Waits for the next interval; returns false after the stop signal.
    async fn pause(&self, stop: &mut Stop) -> bool {
        tokio::select! {
            () = tokio::time::sleep(self.interval) => true,
            () = stop.wait() => false,
        }
    }

    async fn probe(
        &self,
        probe: fn(&mut State) -> &mut Probe,
        answer: impl Future<Output = Result<()>>,
        stop: &mut Stop,
    ) {
        let started = Instant::now();
        probe(&mut self.lock()).started = Some(started);
        let answer = tokio::select! {
            answer = answer => answer,
            () = stop.wait() => return,
        };
        let mut state = self.lock();
        let probe = probe(&mut state);
        (probe.started, probe.took) = (None, started.elapsed());
        let failure = answer.err().map(|error| error.message);
        if let (Some(why), None) = (&failure, &probe.failure) {
            tracing::error!(why, "a watchdog probe failed");
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
            return Err(Error::new(ErrorKind::Internal, "the watchdog statement returned no rows"));
        };
        while let Some(batch) = rows.stream.next().await {
            batch?;
        }
        Ok(())
    };
    // A second timeout here: the threads that enforce statement timeouts may be stuck.
    let late = || {
        Error::new(ErrorKind::Unavailable, format!("the watchdog statement took more than {} s", deadline.as_secs()))
    };
    tokio::time::timeout(deadline, answered).await.unwrap_or_else(|_| Err(late()))
}
