//! Text by the batch: [`lengths`] in characters, and what [`one_pass`] finds in it.

mod lengths;
mod one_pass;

pub use lengths::char_lengths;
pub use one_pass::{Found, OnePass};
