//! Text for a socket, which reads it where it lies.
//!
//! In: lines as they were written. Out: an object with Python's buffer interface (PEP 3118), read only. Always: the
//! bytes neither move nor change while the object lives, and each view of them keeps it alive.
#![expect(unsafe_code, reason = "the buffer interface fills a C structure")]

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::ptr;

/// Text on its way to a server.
#[pyclass(frozen, module = "tidalite._native")]
pub struct Piece(Vec<u8>);

impl Piece {
    pub fn all(pieces: Vec<Vec<u8>>) -> Vec<Piece> {
        pieces.into_iter().filter(|bytes| !bytes.is_empty()).map(Piece).collect()
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[pymethods]
impl Piece {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// # Safety
    /// Called by the interpreter, with a structure to be filled.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = &slf.get().0;
        let Ok(len) = ffi::Py_ssize_t::try_from(bytes.len()) else {
            return Err(PyBufferError::new_err("the text is too long"));
        };
        // SAFETY: `view` is the interpreter's, to be filled; the bytes stay where they are as long as the object, which
        // the view holds a reference to, since nothing changes it. A request to write is refused, as the last but one
        // argument says.
        let filled =
            unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), bytes.as_ptr().cast_mut().cast(), len, 1, flags) };
        if filled == 0 {
            return Ok(());
        }
        // SAFETY: as above; on failure no object may be left in it.
        unsafe { (*view).obj = ptr::null_mut() };
        Err(PyErr::take(slf.py()).unwrap_or_else(|| PyBufferError::new_err("the text is read only")))
    }
}
