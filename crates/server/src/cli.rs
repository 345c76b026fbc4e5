//! The command line: what was asked for, and how it ends.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong arguments or settings, 3 failed write or sync of a server's log
//! ([`restart`]).

use crate::config::{self, Config, Given, OnSyncFailure, SETTINGS};
use crate::serve::Server;
use crate::{demo, generated, import, logging, memory, restart, shell, system, upkeep};
use clap::builder::StyledStr;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tidalite::ask_for_short_turns;
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

/// Flags for all settings, from their table.
pub fn with_settings(command: Command) -> Command {
    let config =
        Arg::new("config").long("config").value_name("FILE").help("Settings file (TOML) [env: TIDALITE_CONFIG]");
    SETTINGS.iter().fold(command.arg(config), |command, setting| {
        let default =
            if setting.default.is_empty() { String::new() } else { format!(" [default: {}]", setting.default) };
        let help = format!("{}{default}", setting.help);
        let long = format!("{help}\nAllowed: {} [key: {}] [env: {}]", setting.allowed, setting.key, setting.env());
        let arg = Arg::new(setting.key).long(setting.flag).value_name(setting.value_name);
        let arg = arg.help(StyledStr::from(help)).long_help(StyledStr::from(long));
        // A switch may stand alone.
        let arg = if setting.value_name == "BOOL" {
            arg.num_args(0..=1).default_missing_value("true").require_equals(true)
        } else {
            arg
        };
        command.arg(arg)
    })
}

/// The settings from file, environment and these flags.
///
/// # Errors
/// The message for the user.
pub fn given(matches: &ArgMatches) -> Result<Given, String> {
    let file = matches.get_one::<String>("config").map(PathBuf::from);
    let flags = SETTINGS.iter().filter_map(|s| Some((s.key, matches.get_one::<String>(s.key)?.clone())));
    let env = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Given::gather(file.as_deref(), env, flags).map_err(|e| e.to_string())
}

/// Prints why and says so by the exit code.
pub fn fail(code: u8, message: &str) -> ExitCode {
    print_err!("tidalite: {message}");
    ExitCode::from(code)
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

/// The threads of the sockets: they parse lines and write answers; queries have threads of their own.
///
/// # Errors
/// When the system has no threads.
pub fn socket_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    // Somebody waits for them, and they have little to do at a time.
    let begin = || {
        ask_for_short_turns();
        system::begin_dates();
    };
    threads.thread_name("sockets").on_thread_start(begin).enable_all().build()
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

/// SIGTERM and SIGINT, since [`Signals::listen`].
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// # Errors
    /// When the system refuses, as a message.
    pub fn listen() -> Result<Signals, String> {
        let listen = |kind| signal(kind).map_err(|e| format!("could not listen for signals: {e}"));
        Ok(Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Stops the server; one more signal means "now".
    ///
    /// # Errors
    /// The message for the user.
    pub async fn stop(&mut self, server: Server) -> Result<(), String> {
        tokio::select! {
            stopped = server.stop() => stopped.map_err(|e| format!("the database did not close cleanly: {e}")),
            _ = self.next() => {
                print_err!("tidalite: stopped at once by a second signal; what was acknowledged is in the log");
                std::process::exit(1)
            }
        }
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
