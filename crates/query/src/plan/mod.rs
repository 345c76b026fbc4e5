//! What we do to a plan, one change per file: to the logical one before it is optimised, and [`TiesInOrder`] at the end.

mod literals;
mod tail;
mod ties;
mod time_order;

pub(crate) use literals::typed_literals;
pub(crate) use tail::last_rows;
pub(crate) use ties::TiesInOrder;
pub(crate) use time_order::in_time_order;
