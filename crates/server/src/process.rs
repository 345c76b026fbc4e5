//! The process of a command: its settings, threads and exit code.

use crate::config::{Given, SETTINGS};
use crate::system;
use clap::builder::StyledStr;
use clap::{Arg, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;
use tidalite::ask_for_short_turns;

/// Adds the flags of all settings in [`SETTINGS`].
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
        // `--flag` alone means true.
        let arg = if setting.value_name == "BOOL" {
            arg.num_args(0..=1).default_missing_value("true").require_equals(true)
        } else {
            arg
        };
        command.arg(arg)
    })
}

/// Returns the settings of the file, the environment and the flags.
///
/// # Errors
/// The message for the user.
pub fn given(matches: &ArgMatches) -> Result<Given, String> {
    let file = matches.get_one::<String>("config").map(PathBuf::from);
    let flags = SETTINGS.iter().filter_map(|s| Some((s.key, matches.get_one::<String>(s.key)?.clone())));
    let env = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Given::gather(file.as_deref(), env, flags).map_err(|e| e.to_string())
}

/// Prints the message to standard error and returns the exit code.
pub fn fail(code: u8, message: &str) -> ExitCode {
    print_err!("tidalite: {message}");
    ExitCode::from(code)
}

/// Creates the threads that serve sockets: they parse lines and write responses; queries have their own threads.
///
/// # Errors
/// The system cannot start threads.
pub fn socket_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    // Clients wait for these threads, and each task of a thread is short.
    let begin = || {
        ask_for_short_turns();
        system::begin_dates();
    };
    threads.thread_name("sockets").on_thread_start(begin).enable_all().build()
}
