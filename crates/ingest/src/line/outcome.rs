//! How reading a part of a line can stop.

/// `Err` unwinds to the start of the line; the row is then undone.
pub(super) type Parsed<T> = Result<T, Stop>;

#[derive(Debug)]
pub(super) enum Stop {
    /// The input ends before the line does.
    Incomplete,
    /// `at` is a position in the input.
    Bad { at: usize, message: String },
}

#[cold]
pub(super) fn bad<T>(at: usize, message: impl Into<String>) -> Parsed<T> {
    Err(Stop::Bad { at, message: message.into() })
}

/// Bytes of a message's subject, made readable and kept short.
#[cold]
pub(super) fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]);
    if bytes.len() > BYTES_MAX { format!("{text:?}…") } else { format!("{text:?}") }
}
