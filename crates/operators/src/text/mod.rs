//! Processes strings in batches: [`lengths`] in characters, and patterns that [`one_pass`] finds.

mod lengths;
mod one_pass;

pub use lengths::char_lengths;
pub use one_pass::{Found, OnePass};
