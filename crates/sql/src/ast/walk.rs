//! A walk over the relations and expressions of a query, with those of its sub-queries.

super::walker::walker! {
    /// Receives the nodes of a tree, outer nodes first.
    Visitor, iter, as_deref
}
