//! What the tests share.
#![allow(dead_code, reason = "each test binary uses a part of it")]

pub mod compact;
pub mod corpus;
