//! The LIMIT of `LIMIT n, -m`: all rows but the last m. [`crate::plan::limits_in_time_order`] replaces the call, which is
//! never evaluated.

use super::scalar::{Gives, Kind, PLAIN, Scalar};
use crate::Error;

/// Name of the function that stands for the limit "all rows except the last n".
pub(crate) const ALL_BUT_LAST: &str = "__all_but_last";

pub(super) const FUNCTIONS: &[Scalar] = &[Scalar {
    name: ALL_BUT_LAST,
    takes: "a number of rows",
    kinds: &[Kind::Long],
    gives: Gives::Long,
    call: |_| Err(Error::internal("a limit that leaves out the last rows is evaluated").into()),
    ..PLAIN
}];
