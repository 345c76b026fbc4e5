//! The native half of the Python package: what Python would do too slowly, and nothing it can do itself.
//!
//! In: plain Python values, and frames as Arrow streams (`__arrow_c_stream__`). Out: the same. The package around it
//! (`crates/python/tidalite`) has the interface that people see, and its documentation.
//!
//! Always: no thread waits with the interpreter's lock held; while one waits, signals are looked at, so that Ctrl-C
//! ends what it waits for.
//!
//! Reading order: [`database`] the engine in process; [`rows`] what a query answers; [`parameters`] what it is asked
//! with; [`ipc`] rows to and from a server; [`buffer`] and [`lines`] line protocol; [`sign`] its authentication; [`capsule`] Arrow across the border and
//! [`piece`] text to a socket, the only unsafe code; [`wait`], [`errors`].
//!
//! Memory of ours is the server's mimalloc, and only ours: the interpreter and other libraries keep theirs. The system's gives large pieces
//! back after every query, and a grouping of millions takes half as long again to get them zeroed page by page.

mod buffer;
mod capsule;
mod database;
mod errors;
mod ipc;
mod lines;
mod parameters;
mod piece;
mod rows;
mod sign;
mod values;
mod wait;

use pyo3::prelude::*;
use tidalite_memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator<mimalloc::MiMalloc> = CountingAllocator::new(mimalloc::MiMalloc);

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<database::Database>()?;
    module.add_class::<database::Transaction>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<rows::Table>()?;
    module.add_class::<ipc::IpcDecoder>()?;
    module.add_class::<ipc::IpcEncoder>()?;
    module.add_class::<buffer::Buffer>()?;
    module.add_class::<lines::Lines>()?;
    module.add_class::<piece::Piece>()?;
    module.add_function(wrap_pyfunction!(rows::stream, module)?)?;
    module.add_function(wrap_pyfunction!(sign::sign, module)?)?;
    Ok(())
}
