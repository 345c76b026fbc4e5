//! The `tidalite` binary: the server, its shell, its demo.
//!
//! Reading order: [`cli`] command line, [`process`] settings, threads and exit codes of commands, [`signals`];
//! [`config`] settings; [`serve`] start and stop, [`restart`] after a failed log; [`accept`], [`http`], [`pgwire`],
//! [`ilp`], [`health`] ports, [`socket`] and [`tls`] connections; [`lines`] line protocol; [`answer`], [`cells`],
//! [`digits`], [`json`] result rows; [`errors`] error responses; [`auth`], [`logins`], [`budget`], [`counters`],
//! [`logging`], [`memory`], [`system`], [`stop`]; [`shell`], [`demo`], [`import`] and [`upkeep`]; [`terminal`] output
//! of commands.
//!
//! This crate uses sockets and the library `tidalite`, and no crate below.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

#[macro_use]
mod terminal;

mod accept;
mod answer;
mod auth;
mod budget;
mod cells;
mod cli;
mod config;
mod counters;
mod demo;
mod digits;
mod errors;
mod generated;
mod health;
mod http;
mod ilp;
mod import;
mod json;
mod lines;
mod logging;
mod logins;
mod memory;
mod pgwire;
mod process;
mod restart;
mod results;
mod serve;
mod shell;
mod signals;
mod slow_reader;
mod socket;
mod stop;
mod system;
mod tls;
mod upkeep;

use tidalite_memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator<mimalloc::MiMalloc> = CountingAllocator::new(mimalloc::MiMalloc);

fn main() -> std::process::ExitCode {
    cli::run()
}
