//! Shared by the targets: [`memory`] counts allocations; [`seal`] makes checksums of mutated files right, so that
//! mutations reach the decoders behind them; [`folder`] is a data folder in memory; [`seeds`] are valid files.

pub mod folder;
pub mod memory;
pub mod seal;
pub mod seeds;
