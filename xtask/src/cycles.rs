//! Import cycles among the files of a crate.
//!
//! Input: the sources of each crate. An edge goes from a file to each file of the crate that defines a name used by
//! the first one; a re-export is followed to the definition. No edges: `pub use` of a descendant, tests, calls of
//! methods. Output: an offence for each set of files that reach one another (a strongly connected component).

mod components;
mod imports;
mod modules;

use std::path::Path;

use crate::{crate_sources, files};
use components::components;
use modules::{Crate, Edge, shown};

/// Crates that have cycles, with the largest number of files in one component. The numbers may only decrease.
const ALLOWED: &[(&str, usize)] = &[
    ("query", 264),
    // The types of the syntax tree contain one another: an expression has queries, a query has expressions.
    ("sql", 8),
    ("tidalite", 29),
];
/// Edges listed in an offence.
const EDGES_SHOWN_MAX: usize = 30;

pub fn check(root: &Path, offences: &mut Vec<String>) {
    for folder in files::crate_folders(root) {
        match crate_sources::read(root, &folder) {
            Ok(sources) => check_crate(&folder, &Crate::new(&sources).edges(), offences),
            Err(error) => offences.push(format!("{folder}/src: {error}")),
        }
    }
}

fn check_crate(folder: &str, edges: &[Edge], offences: &mut Vec<String>) {
    let found = crate_components(edges);
    let largest = found.iter().map(Vec::len).max().unwrap_or(0);
    let allowed = ALLOWED.iter().find(|(name, _)| folder.strip_prefix("crates/") == Some(name));
    match allowed {
        Some(_) if found.is_empty() => {
            offences
                .push(format!("{folder} has no import cycles: remove its entry from ALLOWED in xtask/src/cycles.rs"));
        }
        Some((_, files_max)) if largest <= *files_max => {}
        _ => offences.extend(found.iter().map(|component| offence(folder, component, edges, EDGES_SHOWN_MAX))),
    }
}

fn offence(folder: &str, component: &[&[String]], edges: &[Edge], edges_max: usize) -> String {
    let mut out = format!("{folder}: import cycle of {} files", component.len());
    let inside =
        edges.iter().filter(|a| component.contains(&a.from.as_slice()) && component.contains(&a.to.as_slice()));
    for edge in inside.clone().take(edges_max) {
        out += &format!("\n    {} -> {}  ({})", shown(&edge.from), shown(&edge.to), edge.path);
    }
    let rest = inside.count().saturating_sub(edges_max);
    if rest > 0 {
        out += &format!("\n    and {rest} more edges");
    }
    out
}

/// Prints the components of `crates` (all without names), with the edges inside of each.
pub fn report(root: &Path, crates: &[String]) {
    for folder in files::crate_folders(root) {
        let name = folder.rsplit('/').next().unwrap_or_default();
        if !crates.is_empty() && crates.iter().all(|c| c != name) {
            continue;
        }
        match crate_sources::read(root, &folder) {
            Ok(sources) => {
                let edges = Crate::new(&sources).edges();
                let found = crate_components(&edges);
                println!(
                    "{folder}: {} components of {:?} files",
                    found.len(),
                    found.iter().map(Vec::len).collect::<Vec<_>>()
                );
                for component in found.iter().filter(|_| !crates.is_empty()) {
                    println!("{}", offence(&folder, component, &edges, usize::MAX));
                }
            }
            Err(error) => eprintln!("{folder}/src: {error}"),
        }
    }
}

fn crate_components(edges: &[Edge]) -> Vec<Vec<&[String]>> {
    components(edges.iter().map(|a| (a.from.as_slice(), a.to.as_slice())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences(files: &[(&str, &str)]) -> Vec<String> {
        let mut offences = Vec::new();
        check_crate("crates/made_up", &Crate::new(&crate_sources::from_texts(files)).edges(), &mut offences);
        offences
    }

    #[test]
    fn layers_are_no_cycle() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "pub struct A;"),
            ("b/mod.rs", "mod c; pub use c::C; use crate::A; fn f() { c::g(); }"),
            ("b/c.rs", "use crate::a::A; #[cfg(test)] mod tests { use super::super::B; }"),
        ];
        assert_eq!(offences(&files), [""; 0]);
    }

    #[test]
    fn an_import_of_the_parent_is_a_cycle() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b; use b::B; pub struct A;"),
            ("a/b.rs", "use super::A; pub struct B;"),
        ];
        assert_eq!(
            offences(&files),
            ["crates/made_up: import cycle of 2 files\n    a -> a::b  (b::B)\n    a::b -> a  (super::A)"]
        );
    }

    #[test]
    fn re_exports_are_followed() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use self::{a::A, b::B};"),
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "fn f() -> crate::A { todo!() } pub struct B;"),
        ];
        assert_eq!(
            offences(&files),
            ["crates/made_up: import cycle of 2 files\n    a -> b  (crate::B)\n    b -> a  (crate::A)"]
        );
    }
}
