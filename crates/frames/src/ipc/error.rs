//! The reasons why a stream is refused.

/// Why a stream is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpcError {
    /// The bytes are not a stream of Arrow's IPC format.
    #[error("{0}")]
    Malformed(String),
    /// The compressed buffers of the stream are larger than [`IpcLimits`](super::IpcLimits) allows.
    #[error("the decompressed columns of the stream are larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

impl IpcError {
    pub(super) fn malformed(message: impl Into<String>) -> IpcError {
        IpcError::Malformed(message.into())
    }
}

impl From<arrow::error::ArrowError> for IpcError {
    fn from(error: arrow::error::ArrowError) -> IpcError {
        IpcError::Malformed(error.to_string())
    }
}
