//! The storage order of new rows.

use tidalite_kernels::gather::Place;

/// The rows of a piece in storage order, and the position of each row in the piece.
#[derive(Debug)]
pub(super) struct ByArrival {
    pub(super) places: Vec<Place>,
    pub(super) to: Vec<u16>,
}
