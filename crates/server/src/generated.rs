//! `tidalite completions` and `tidalite man`: files for packages, generated from the definition of the command line.

use crate::process::fail;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The subcommands of this file. They are hidden: packages call them.
#[must_use]
pub fn commands() -> [Command; 2] {
    [
        Command::new("completions")
            .about("Prints the completion script of a shell")
            .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)))
            .hide(true),
        Command::new("man")
            .about("Writes the man pages of all subcommands into a folder")
            .arg(Arg::new("folder").value_name("DIR").required(true).value_parser(value_parser!(PathBuf)))
            .hide(true),
    ]
}

/// Runs `completions` or `man`; `None` for another subcommand.
#[must_use]
pub fn run(name: &str, matches: &ArgMatches, command: Command) -> Option<ExitCode> {
    let written = match name {
        "completions" => print_completions(*matches.get_one::<Shell>("shell")?, command),
        "man" => write_man_pages(matches.get_one::<PathBuf>("folder")?, command),
        _ => return None,
    };
    Some(written.map_or_else(|error| fail(1, &format!("could not write: {error}")), |()| ExitCode::SUCCESS))
}

fn print_completions(shell: Shell, mut command: Command) -> io::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "tidalite", &mut script);
    io::Write::write_all(&mut io::stdout(), &script)
}

/// Writes `tidalite.1` and a page for each visible subcommand, such as `tidalite-serve.1`.
fn write_man_pages(folder: &Path, command: Command) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let serve = Command::new("serve").about("Runs the database");
        Command::new("tidalite").subcommand(serve).subcommands(commands())
    }

    #[test]
    fn man_pages_of_visible_subcommands() {
        let folder = tempfile::tempdir().expect("a folder");
        write_man_pages(folder.path(), command()).expect("written");
        let page = |name: &str| std::fs::read_to_string(folder.path().join(name));
        assert!(page("tidalite.1").expect("the main page").contains("tidalite\\-serve"));
        assert!(page("tidalite-serve.1").expect("a page").contains("Runs the database"));
        assert!(page("tidalite-man.1").is_err(), "hidden subcommands have no page");
    }

    #[test]
    fn completions_name_the_subcommands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "tidalite", &mut script);
            assert!(String::from_utf8(script).expect("text").contains("serve"), "{shell}");
        }
    }
}
