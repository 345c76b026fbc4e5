//! The error of keys that cannot be packed.

/// The keys are too many, or have a value that cannot be packed. The caller must use another operator.
#[derive(Debug)]
pub struct Overflow;
