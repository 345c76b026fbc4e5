//! What we do to a logical plan before it is optimised, one change per file.

mod literals;
mod time_order;

pub(crate) use literals::typed_literals;
pub(crate) use time_order::in_time_order;
