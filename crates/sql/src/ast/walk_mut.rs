//! As [`super::walk`], with nodes that the visitor may change.

super::walker::walker! {
    /// Receives the nodes of a tree, outer nodes first, and may change them.
    VisitorMut, iter_mut, as_deref_mut, mut
}
