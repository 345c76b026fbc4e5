//! Names that InfluxDB clients use for the database.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The name of the database if no other name was created.
pub(super) const DATABASE: &str = "tidalite";

/// Maximum number of remembered database names.
const NAMES_MAX: usize = 1_000;

/// Database names from `CREATE DATABASE`, listed until the server restarts.
#[derive(Debug, Default)]
pub struct Names(Mutex<BTreeSet<String>>);

impl Names {
    pub(super) fn add(&self, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < NAMES_MAX {
            names.insert(name.to_owned());
        }
    }

    pub(super) fn all(&self) -> Vec<String> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = names.iter().filter(|name| *name != DATABASE).cloned();
        std::iter::once(DATABASE.to_owned()).chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_databases_are_listed_up_to_a_number() {
        let names = Names::default();
        (0..2 * NAMES_MAX).for_each(|number| names.add(&format!("db{number}")));
        names.add(DATABASE);
        let all = names.all();
        assert_eq!(all.len(), NAMES_MAX + 1);
        assert!(all[0] == DATABASE && all.contains(&"db7".to_owned()));
    }
}
