//! Lines for the person at the terminal, written to standard output and standard error.
//!
//! `println!` and `eprintln!` panic when their stream is closed (`tidalite check | head -1`), so this crate does not use
//! them: `clippy::print_stdout` and `clippy::print_stderr` are denied in `main.rs`. A line that cannot be written is lost.

use std::fmt::Arguments;
use std::io::Write;

/// Writes `text` and a line feed to standard output; an error of the stream is ignored.
pub fn write_out(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_fmt(text).and_then(|()| out.write_all(b"\n"));
}

/// Writes `text` and a line feed to standard error; an error of the stream is ignored.
pub fn write_err(text: Arguments<'_>) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_fmt(text).and_then(|()| err.write_all(b"\n"));
}

/// `println!` without its panic.
macro_rules! print_out {
    ($($text:tt)*) => { $crate::terminal::write_out(format_args!($($text)*)) };
}

/// `eprintln!` without its panic.
macro_rules! print_err {
    ($($text:tt)*) => { $crate::terminal::write_err(format_args!($($text)*)) };
}
