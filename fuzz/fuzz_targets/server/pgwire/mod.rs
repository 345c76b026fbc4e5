//! The files of the server that parse what a PostgreSQL client sends.

#[path = "../../../../crates/server/src/pgwire/copy_binary.rs"]
pub mod copy_binary;
#[path = "../../../../crates/server/src/pgwire/message.rs"]
pub mod message;
#[path = "../../../../crates/server/src/pgwire/numeric.rs"]
pub mod numeric;
#[path = "../../../../crates/server/src/pgwire/parameters.rs"]
pub mod parameters;

pub mod reply {
    pub use crate::stubs::Report;
}
