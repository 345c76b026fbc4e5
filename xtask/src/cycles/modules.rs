//! The files of a crate as modules, and the edges between them.

use std::collections::BTreeMap;

use super::imports::{Import, imports};
use crate::code;
use crate::crate_sources::{Module, Source, child};

/// Longest chain of re-exports that is followed.
const REEXPORTS_MAX: usize = 8;

pub struct Crate {
    files: BTreeMap<Module, Vec<Import>>,
}

/// `from` uses a name that `to` defines.
#[derive(Debug)]
pub struct Edge {
    pub from: Module,
    pub to: Module,
    /// The first path that makes the edge.
    pub path: String,
}

impl Crate {
    pub fn new(sources: &[Source]) -> Crate {
        let paths = |source: &Source| imports(&code::without_tests(&code::tokens(&source.text)));
        Crate { files: sources.iter().map(|source| (source.module.clone(), paths(source))).collect() }
    }

    /// One edge for each pair of files, in the order of the modules.
    pub fn edges(&self) -> Vec<Edge> {
        let mut out: BTreeMap<(Module, Module), String> = BTreeMap::new();
        for (from, imports) in &self.files {
            for import in imports {
                let Some(to) = self.resolve(from, &import.segments, 0) else { continue };
                let is_child = import.is_reexport && to.starts_with(from);
                if to != *from && !is_child {
                    out.entry((from.clone(), to)).or_insert_with(|| import.segments.join("::"));
                }
            }
        }
        out.into_iter().map(|((from, to), path)| Edge { from, to, path }).collect()
    }

    /// The file that defines the name at the end of `path`, seen from `module`; none for other crates.
    fn resolve(&self, module: &Module, path: &[String], reexports: usize) -> Option<Module> {
        let (mut at, mut rest) = self.start(module, path)?;
        while let Some(first) = rest.first()
            && self.files.contains_key(&child(&at, first))
        {
            at = child(&at, first);
            rest = &rest[1..];
        }
        let name = rest.first();
        let uses = self.files.get(&at)?.iter().filter(|i| name.is_some() && i.name.as_ref() == name);
        if reexports < REEXPORTS_MAX
            && let Some(defined) = uses.filter_map(|i| self.resolve(&at, &i.segments, reexports + 1)).next()
        {
            return Some(defined);
        }
        Some(at)
    }

    /// The module where the search begins, and the segments after it.
    fn start<'p>(&self, module: &Module, path: &'p [String]) -> Option<(Module, &'p [String])> {
        let first = path.first()?;
        if first == "crate" {
            return Some((Module::new(), &path[1..]));
        }
        let rest = if first == "self" { &path[1..] } else { path };
        let supers = rest.iter().take_while(|s| *s == "super").count();
        if supers > 0 {
            return Some((module[..module.len().checked_sub(supers)?].to_vec(), &rest[supers..]));
        }
        (first == "self" || self.files.contains_key(&child(module, first))).then(|| (module.clone(), rest))
    }
}

pub fn shown(module: &[String]) -> String {
    if module.is_empty() { "crate".to_owned() } else { module.join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crate_sources;

    fn names(files: &[(&str, &str)]) -> Vec<String> {
        let edges = Crate::new(&crate_sources::from_texts(files)).edges();
        edges.iter().map(|a| format!("{} -> {}", shown(&a.from), shown(&a.to))).collect()
    }

    #[test]
    fn private_imports_of_a_parent_are_followed() {
        let files = [
            ("lib.rs", "mod a; mod b; use b::B;"),
            ("a/mod.rs", "use super::B; use std::fs; pub use super::b::D;"),
            ("b.rs", "mod c;"),
            ("b/c.rs", ""),
        ];
        assert_eq!(names(&files), ["crate -> b", "a -> b"]);
    }
}
