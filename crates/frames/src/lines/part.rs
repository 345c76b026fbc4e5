//! A column of the frame that is written to lines.

/// A column of the frame, and the text before its values, `,name=`.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) prefix: Vec<u8>,
}
