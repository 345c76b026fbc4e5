//! The command line: its commands, and their exit codes.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong arguments or settings, 3 failed write or sync of a server's log
//! ([`restart`]).

use crate::config::{self, Config, OnSyncFailure};
use crate::process::{fail, given, socket_runtime, with_settings};
use crate::serve::Server;
use crate::signals::Signals;
use crate::{demo, generated, import, logging, memory, restart, shell, upkeep};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

const WRONGLY_ASKED: u8 = 2;

/// Time for remaining tasks to end after the stop.
const RUNTIME_END: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  tidalite serve                                     the database, on the default ports
  tidalite serve --data /var/lib/tidalite --http 127.0.0.1:9100
  tidalite demo                                      the database with some data in it
  tidalite sql                                       a shell for the server on this machine
  tidalite sql \"select count(*) from cpu\"            one query
  tidalite sql --data ./tidalite-data \"show tables\"  without a server
  tidalite import trades.csv --data ./tidalite-data  a file into a table
  tidalite check --data ./tidalite-data              is every byte as it was written?
  tidalite backup --to /backups/db                   of the running server, what is new
  tidalite restore --from /backups/db --data ./new   the last backup as a data folder
  curl -G http://127.0.0.1:9000/exec --data-urlencode 'query=show tables'";

#[must_use]
pub fn run() -> ExitCode {
    let matches = command().get_matches();
    if matches!(matches.subcommand_name(), Some("serve" | "demo" | "import")) {
        memory::keep();
    }
    match matches.subcommand() {
        Some(("serve", matches)) => serve(matches),
        Some(("sql", matches)) => shell::run(matches),
        Some(("demo", matches)) => demo::run(matches),
        Some(("import", matches)) => import::run(matches),
        Some(("config", matches)) => print_config(matches),
        Some((name, matches)) => generated::run(name, matches, command())
            .or_else(|| upkeep::run(name, matches))
            .unwrap_or(ExitCode::from(WRONGLY_ASKED)),
        None => ExitCode::from(WRONGLY_ASKED),
    }
}

fn command() -> Command {
    Command::new("tidalite")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A time-series database: line protocol in, SQL out")
        .after_help(EXAMPLES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            with_settings(Command::new("serve").about("Runs the database until SIGTERM or SIGINT")).after_help(
                "Every flag can also be given in a settings file or the environment: see `tidalite config`.",
            ),
        )
        .subcommand(shell::command())
        .subcommand(demo::command())
        .subcommand(import::command())
        .subcommands(upkeep::commands())
        .subcommands(generated::commands())
        .subcommand(
            with_settings(Command::new("config").about("Prints the settings that hold, and where each comes from"))
                .arg(
                    Arg::new("markdown")
                        .long("markdown")
                        .action(ArgAction::SetTrue)
                        .help("Prints the documentation page instead"),
                ),
        )
}

fn print_config(matches: &ArgMatches) -> ExitCode {
    if matches.get_flag("markdown") {
        print_out!("{}", config::markdown().trim_end_matches('\n'));
        return ExitCode::SUCCESS;
    }
    match given(matches).and_then(|given| Config::new(&given).map(|_| given).map_err(|e| e.to_string())) {
        Ok(given) => {
            print_out!("{}", config::effective(&given).trim_end_matches('\n'));
            ExitCode::SUCCESS
        }
        Err(message) => fail(WRONGLY_ASKED, &message),
    }
}

fn serve(matches: &ArgMatches) -> ExitCode {
    let given = match given(matches) {
        Ok(given) => given,
        Err(message) => return fail(WRONGLY_ASKED, &message),
    };
    let config = match Config::new(&given) {
        Ok(config) => config,
        Err(error) => return fail(WRONGLY_ASKED, &error.to_string()),
    };
    logging::start(&config.log_level, config.log_format);
    for name in &given.unknown_env {
        tracing::warn!(name, "this variable is no setting of Tidalite; `tidalite config` lists them");
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), data = %config.database.data.display(), "starting");
    let runtime = match socket_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("could not start threads: {error}")),
    };
    let ended = runtime.block_on(serve_until_stopped(config));
    // Remaining tasks must not run during a restart.
    runtime.shutdown_timeout(RUNTIME_END);
    match ended {
        Ok(End::Stopped) => {
            logging::flush();
            ExitCode::SUCCESS
        }
        Ok(End::LogFailed(OnSyncFailure::Restart)) => restart::begin_again(),
        Ok(End::LogFailed(_)) => {
            logging::flush();
            ExitCode::from(restart::LOG_FAILED)
        }
        Err(message) => restart::failed_start(&message),
    }
}

/// The end of a server that had started.
enum End {
    Stopped,
    LogFailed(OnSyncFailure),
}

async fn serve_until_stopped(config: Config) -> Result<End, String> {
    // Before the start: a signal during recovery stops the server after it, not in the middle.
    let mut signals = Signals::listen()?;
    // An unhandled SIGHUP would end the server.
    let mut hangup = signal(SignalKind::hangup()).map(Some);
    let server = Server::start(config).await.map_err(|e| e.to_string())?;
    tracing::info!("ready");
    let name = loop {
        tokio::select! {
            name = signals.next() => break name,
            () = received(&mut hangup) => server.reload(),
            action = server.log_failed() => {
                tracing::error!(?action, "the log failed; stopping");
                // The error would repeat that the log failed.
                let _ = signals.stop(server).await;
                return Ok(End::LogFailed(action));
            }
        }
    };
    tracing::info!(signal = name, "stopping");
    signals.stop(server).await?;
    tracing::info!("stopped");
    Ok(End::Stopped)
}

/// The next of a signal that may not be listened for.
async fn received<E>(signal: &mut Result<Option<Signal>, E>) {
    match signal {
        Ok(Some(signal)) => {
            signal.recv().await;
        }
        _ => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn flags_become_settings() {
        let matches = command().get_matches_from(["tidalite", "serve", "--http", "127.0.0.1:1", "--insecure-bind"]);
        let (_, matches) = matches.subcommand().unwrap();
        let given = given(matches).unwrap();
        assert_eq!(given.get("http.listen").0, "127.0.0.1:1");
        assert_eq!(given.get("insecure_bind").0, "true");
    }
}
