//! The source of the bytes of a file, and the error of a failed read.

use crate::{Error, ErrorKind};
use std::io::Read;

pub type Reader = Box<dyn Read + Send>;

/// Returns the error of a failed read. Invalid data is not [`ErrorKind::Unavailable`]: a retry fails too.
pub(super) fn unreadable(error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{InvalidData, InvalidInput};
    let is_broken = matches!(error.kind(), InvalidData | InvalidInput);
    let kind = if is_broken { ErrorKind::Invalid } else { ErrorKind::Unavailable };
    Error::new(kind, format!("could not be read: {error}"))
}
