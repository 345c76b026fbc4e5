//! What we do to a logical plan before it is optimised, one change per file.

mod literals;
mod tail;
mod time_order;

pub(crate) use literals::typed_literals;
pub(crate) use tail::last_rows;
pub(crate) use time_order::in_time_order;
