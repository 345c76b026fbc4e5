//! The immutable file of a partition's rows: every column in blocks, a footer, a checksum per block.
//!
//! Reading order: [`format`] the bytes; [`encoding`] one physical encoding per file; [`writer`]; [`reader`].

pub mod reader;

pub use reader::Segment;
