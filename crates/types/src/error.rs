//! Classification of errors by the caller's action. Each library crate maps its own `Error` to one of these kinds.

/// The kind of an error. A new kind is added only if a caller would act differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid and will be invalid again.
    Invalid,
    /// The request names something that does not exist.
    NotFound,
    /// The request conflicts with existing state or a concurrent change.
    Conflict,
    /// Temporarily impossible: the caller may retry (disk full, shutdown, timeout, cancellation).
    Unavailable,
    /// Stored data fails its checksum or its format.
    Corrupt,
    /// A bug.
    Internal,
}
