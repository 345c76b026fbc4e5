//! The server as its clients see it: a process of its own on free ports, raw sockets, no sleeps.

mod harness;
mod http;
mod lifecycle;
mod lines;
mod query;
mod shell;
