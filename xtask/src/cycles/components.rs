//! Strongly connected components of a graph (Tarjan's algorithm).

use std::collections::{BTreeMap, BTreeSet};

/// Components of at least two nodes, each sorted, in the order of their first nodes.
pub fn components<N: Ord + Copy>(edges: impl Iterator<Item = (N, N)>) -> Vec<Vec<N>> {
    let mut targets: BTreeMap<N, BTreeSet<N>> = BTreeMap::new();
    for (from, to) in edges {
        targets.entry(from).or_default().insert(to);
        targets.entry(to).or_default();
    }
    let mut search =
        Search { targets: &targets, index: BTreeMap::new(), low: BTreeMap::new(), stack: vec![], out: vec![] };
    for node in targets.keys() {
        if !search.index.contains_key(node) {
            search.visit(*node);
        }
    }
    search.out.sort();
    search.out
}

struct Search<'a, N> {
    targets: &'a BTreeMap<N, BTreeSet<N>>,
    /// Order of the visits.
    index: BTreeMap<N, usize>,
    /// The earliest visited node that a node reaches on the stack.
    low: BTreeMap<N, usize>,
    stack: Vec<N>,
    out: Vec<Vec<N>>,
}

impl<N: Ord + Copy> Search<'_, N> {
    fn visit(&mut self, node: N) {
        let index = self.index.len();
        self.index.insert(node, index);
        self.low.insert(node, index);
        self.stack.push(node);
        for target in &self.targets[&node] {
            if !self.index.contains_key(target) {
                self.visit(*target);
            }
            if self.stack.contains(target) {
                let low = self.low[target].min(self.low[&node]);
                self.low.insert(node, low);
            }
        }
        if self.low[&node] == index {
            self.close(node);
        }
    }

    /// Takes the component of `first`, the bottom of the component on the stack.
    fn close(&mut self, first: N) {
        let at = self.stack.iter().position(|n| *n == first).unwrap_or(0);
        let mut component = self.stack.split_off(at);
        component.sort();
        if component.len() > 1 {
            self.out.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cycles_with_an_edge_between_are_two_components() {
        let edges = [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (5, 6), (1, 6)];
        assert_eq!(components(edges.into_iter()), [vec![1, 2, 3], vec![4, 5]]);
        assert!(components([(1, 2), (2, 3), (1, 3)].into_iter()).is_empty());
    }
}
