//! Limits of a stream.

/// Maximum rows of an array: the limit that Arrow recommends for interoperability.
pub(crate) const ROWS_MAX: i64 = i32::MAX as i64;

/// Limits of the decompressed size of a stream.
#[derive(Clone, Copy, Debug)]
pub struct IpcLimits {
    /// Decompressed bytes of the whole stream.
    pub decompressed_bytes_max: usize,
    /// Decompressed bytes for each compressed one, past the first [`IpcLimits::FREE_BYTES`].
    pub ratio_max: usize,
}

impl IpcLimits {
    /// Decompressed bytes without a limit of the ratio: a short column of one value compresses 30,000 to 1.
    pub const FREE_BYTES: usize = 64 << 20;
    /// The maximum ratio of gzip.
    pub const RATIO_MAX: usize = 1000;

    /// No limits, for streams of a server that the caller trusts.
    #[must_use]
    pub fn none() -> IpcLimits {
        IpcLimits { decompressed_bytes_max: usize::MAX, ratio_max: usize::MAX }
    }
}

/// Reserves memory with its owner before it is allocated; an error ends the stream.
pub type Reserve<'a, E> = &'a mut dyn FnMut(usize) -> Result<(), E>;
