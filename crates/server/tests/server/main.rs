//! The server as its clients see it: a process of its own on free ports, raw sockets, no sleeps.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod harness;
mod http;
mod lifecycle;
mod lines;
mod query;
mod shell;
