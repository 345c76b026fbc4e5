//! `functions()`: every function there is, by name.

use super::system::{Columns, text};
use super::{FileReader, random, series, system};
use crate::{Catalog, Result};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Names and kinds.
static ALL: LazyLock<BTreeSet<(String, &'static str)>> = LazyLock::new(|| {
    let mut all = BTreeSet::new();
    let mut add = |name: &str, aliases: &[String], kind| {
        let names = std::iter::once(name.to_owned()).chain(aliases.iter().cloned());
        all.extend(names.filter(|name| !name.starts_with("__")).map(|name| (name, kind)));
    };
    let stock = datafusion::functions::all_default_functions();
    let nested = datafusion::functions_nested::all_default_nested_functions();
    for f in stock.iter().chain(&nested).chain(&super::scalars()) {
        add(f.name(), f.aliases(), "scalar");
    }
    random::NAMES.iter().for_each(|name| add(name, &[], "scalar"));
    for f in datafusion::functions_aggregate::all_default_aggregate_functions().iter().chain(&super::aggregates()) {
        add(f.name(), f.aliases(), "aggregate");
    }
    crate::dialect::AGGREGATE_NAMES.iter().for_each(|name| add(name, &[], "aggregate"));
    for f in datafusion::functions_window::all_default_window_functions() {
        add(f.name(), f.aliases(), "window");
    }
    let ours = system::FUNCTIONS.iter().map(|(name, _)| *name);
    let ours = ours.chain([super::postgres::sleep::SLEEP]);
    ours.chain(series::NAMES.iter().copied())
        .chain(FileReader::ALL.map(FileReader::name))
        .for_each(|name| add(name, &[], "table"));
    all
});

/// Names of scalars, aggregates and window functions, for hints.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|(_, kind)| *kind != "table").map(|(name, _)| name.as_str())
}

/// Returns the names and kinds of all functions.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|(name, kind)| (name.as_str(), *kind))
}

/// Names of table functions.
pub(crate) fn table_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|(_, kind)| *kind == "table").map(|(name, _)| name.as_str())
}

pub(super) fn functions(_: &dyn Catalog, _: &[String]) -> Result<Columns> {
    Ok(vec![("name", text(ALL.iter().map(|(name, _)| name))), ("type", text(ALL.iter().map(|(_, kind)| kind)))])
}
