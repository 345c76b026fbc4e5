//! What an error means to the caller. Each library crate has its own `Error` and sorts it into one of these.

/// A new kind only if a caller would act differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong and will be wrong again.
    Invalid,
    /// It names something that does not exist.
    NotFound,
    /// It collides with what exists or happens at the same time.
    Conflict,
    /// Not now: the caller may retry (disk full, shutting down, timed out, cancelled).
    Unavailable,
    /// Stored data fails its checksum or its format.
    Corrupt,
    /// A bug.
    Internal,
}
