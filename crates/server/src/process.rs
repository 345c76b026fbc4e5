//! The process of a command: its settings, threads and signals, and its exit code.

use crate::config::{Given, SETTINGS};
use crate::serve::Server;
use crate::system;
use clap::builder::StyledStr;
use clap::{Arg, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;
use tidalite::ask_for_short_turns;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
