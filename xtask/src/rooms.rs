//! Who may know whom: the dependencies of each room, against the table of the style guide.
//!
//! Only what a room is built with counts; its tests may use more.

use std::fs;
use std::path::Path;

use crate::files;

struct Room {
    folder: &'static str,
    /// Rooms it may use, by package.
    rooms: &'static [&'static str],
    /// Packages of others it must not see; a name ends a prefix.
    never: &'static [&'static str],
}

const LOW: &[&str] = &["arrow", "datafusion", "sqlparser", "parquet", "tokio", "hyper", "axum", "futures", "socket2"];

/// As the low rooms, but for Arrow's columns.
const KNOWS_ARROW: &[&str] =
    &["datafusion", "sqlparser", "parquet", "tokio", "hyper", "axum", "futures", "socket2", "ureq"];

const ROOMS: &[Room] = &[
    Room { folder: "memory", rooms: &[], never: LOW },
    Room { folder: "types", rooms: &[], never: LOW },
    Room { folder: "kernels", rooms: &["tidalite-types"], never: LOW },
    Room { folder: "jit", rooms: &["tidalite-kernels"], never: LOW },
    Room { folder: "storage", rooms: &["tidalite-types", "tidalite-kernels", "tidalite-memory"], never: LOW },
    Room { folder: "ingest", rooms: &["tidalite-types", "tidalite-kernels", "tidalite-storage"], never: LOW },
    Room { folder: "sql", rooms: &[], never: LOW },
    Room { folder: "operators", rooms: &["tidalite-kernels"], never: KNOWS_ARROW },
    Room {
        folder: "query",
        rooms: &[
            "tidalite-types",
            "tidalite-kernels",
            "tidalite-memory",
            "tidalite-jit",
            "tidalite-storage",
            "tidalite-sql",
            "tidalite-operators",
        ],
        never: &["hyper", "axum", "socket2", "ureq"],
    },
    Room {
        folder: "tidalite",
        rooms: &[
            "tidalite-types",
            "tidalite-kernels",
            "tidalite-memory",
            "tidalite-storage",
            "tidalite-ingest",
            "tidalite-query",
        ],
        never: &["datafusion", "sqlparser", "hyper", "axum", "socket2", "ureq"],
    },
    Room { folder: "frames", rooms: &["tidalite-types"], never: KNOWS_ARROW },
    Room {
        folder: "server",
        rooms: &["tidalite", "tidalite-types", "tidalite-frames", "tidalite-memory"],
        never: &["datafusion", "sqlparser"],
    },
    Room {
        folder: "python",
        rooms: &["tidalite", "tidalite-frames", "tidalite-memory"],
        never: &["datafusion", "sqlparser", "hyper", "axum", "socket2", "ureq"],
    },
];

pub fn check(root: &Path, offences: &mut Vec<String>) {
    let crates = root.join("crates");
    for room in ROOMS {
        let manifest = crates.join(room.folder).join("Cargo.toml");
        match dependencies(&manifest) {
            Ok(dependencies) => check_room(room, &dependencies, offences),
            Err(problem) => offences.push(problem),
        }
    }
    for folder in files::crate_folders(root) {
        if let Some(name) = folder.strip_prefix("crates/")
            && ROOMS.iter().all(|r| r.folder != name)
        {
            offences.push(format!("crates/{name} is in no row of xtask/src/rooms.rs: say whom it may know"));
        }
    }
}

fn check_room(room: &Room, dependencies: &[String], offences: &mut Vec<String>) {
    for name in dependencies {
        let own = name == "tidalite" || name.starts_with("tidalite-");
        if own && !room.rooms.contains(&name.as_str()) {
            offences.push(format!("crates/{} uses {name}, which it may not know", room.folder));
        }
        if room.never.iter().any(|n| name == n || name.strip_prefix(n).is_some_and(|rest| rest.starts_with('-'))) {
            offences.push(format!("crates/{} uses {name}, which does not belong there", room.folder));
        }
    }
}

fn dependencies(manifest: &Path) -> Result<Vec<String>, String> {
    let shown = manifest.display();
    let text = fs::read_to_string(manifest).map_err(|e| format!("{shown}: {e}"))?;
    let table: toml::Table = text.parse().map_err(|e| format!("{shown}: {e}"))?;
    let dependencies = table.get("dependencies").and_then(|d| d.as_table());
    Ok(dependencies.map(|d| d.keys().cloned().collect()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_edges_are_named() {
        let storage = ROOMS.iter().find(|r| r.folder == "storage").unwrap();
        let mut offences = Vec::new();
        let names = ["tidalite-types", "tidalite-ingest", "arrow-array", "arrows", "bytes"];
        check_room(storage, &names.map(str::to_owned), &mut offences);
        assert_eq!(
            offences,
            [
                "crates/storage uses tidalite-ingest, which it may not know",
                "crates/storage uses arrow-array, which does not belong there"
            ]
        );
    }
}
