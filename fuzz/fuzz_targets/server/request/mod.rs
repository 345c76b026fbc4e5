//! The files of the server that parse uploads and parameters.

#[path = "../../../../crates/server/src/http/imports/form.rs"]
pub mod form;
#[path = "../../../../crates/server/src/http/params.rs"]
pub mod params;
