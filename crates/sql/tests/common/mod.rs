//! Helpers shared by the tests.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod compact;
pub mod corpus;
