//! Memory of results that clients have not taken yet: one limit for all of them.
//!
//! A result counts as the batch that is being sent, its encoded form, and the batch that is computed ahead. Past the limit
//! the results of clients that do not read are revoked, largest first ([`crate::slow_reader`] closes their connections);
//! if that makes no room, the result that needs more ends with SQLSTATE 53200.

use crate::budget::{Budget, Watch};
use futures::StreamExt;
use tidalite::{Rows, row_bytes};

/// See above: as many times as large as its batch is a result.
const COPIES: usize = 3;

/// Returns the rows with their memory reserved while they are read, and the handle by which the memory can be revoked.
pub fn held(rows: Rows, budget: &Budget) -> (Rows, Watch) {
    let mut share = budget.share();
    let watch = share.watch();
    let stream = rows.stream.map(move |batch| {
        let batch = batch?;
        share.set(COPIES * row_bytes(&batch))?;
        Ok(batch)
    });
    (Rows { stream: stream.boxed(), ..rows }, watch)
}
