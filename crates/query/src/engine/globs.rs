//! Patterns of paths: `*`, `?` and `[a-c]` stand for a part of one name, `**` for any number of folders.
//!
//! Folder by folder, so that only what a pattern can mean is listed; alike on this machine and in an object store.

use crate::{Error, Result};
use futures::TryStreamExt;
use glob::{MatchOptions, Pattern};
use object_store::ObjectStore;
use object_store::path::Path;
use tidalite_types::ErrorKind;

const WITHIN_A_FOLDER: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: false };

/// Where a path begins to be a pattern: what stands before, up to a `/`, and the rest.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let first = path.find(['*', '?', '['])?;
    Some(path.split_at(path[..first].rfind('/').map_or(0, |slash| slash + 1)))
}

/// The files below `base` whose path from there on is like `pattern`, in the order of their names.
pub(super) async fn files(store: &dyn ObjectStore, base: Path, pattern: &str) -> Result<Vec<Path>> {
    let (mut folders, mut rest) = (vec![base], pattern);
    while let Some((segment, after)) = rest.split_once('/').filter(|(segment, _)| !segment.contains("**")) {
        folders = within(store, folders, segment).await?;
        rest = after;
    }
    let pattern = parsed(rest)?;
    let mut found = Vec::new();
    for folder in folders {
        let files = if rest.contains("**") {
            store.list(Some(&folder)).try_collect().await
        } else {
            store.list_with_delimiter(Some(&folder)).await.map(|listed| listed.objects)
        };
        let files: Vec<_> = files.map_err(|e| unlisted(&folder, &e))?;
        found.extend(files.into_iter().map(|file| file.location).filter(|file| {
            let below = file.as_ref().strip_prefix(folder.as_ref()).unwrap_or_default().trim_start_matches('/');
            pattern.matches_with(below, WITHIN_A_FOLDER)
        }));
    }
    found.sort_unstable();
    Ok(found)
}

/// The folders in these whose name is like `segment`.
async fn within(store: &dyn ObjectStore, folders: Vec<Path>, segment: &str) -> Result<Vec<Path>> {
    if !segment.contains(['*', '?', '[']) {
        let joined = folders.iter().map(|folder| Path::parse(format!("{folder}/{segment}")));
        return joined.collect::<Result<_, _>>().map_err(|e| Error::invalid(e.to_string()));
    }
    let pattern = parsed(segment)?;
    let mut found = Vec::new();
    for folder in folders {
        let listed = store.list_with_delimiter(Some(&folder)).await.map_err(|e| unlisted(&folder, &e))?;
        let is_like = |path: &Path| path.filename().is_some_and(|name| pattern.matches_with(name, WITHIN_A_FOLDER));
        found.extend(listed.common_prefixes.into_iter().filter(is_like));
    }
    Ok(found)
}

fn parsed(pattern: &str) -> Result<Pattern> {
    Pattern::new(pattern).map_err(|e| {
        let mut error = Error::invalid(format!("invalid pattern \"{pattern}\": {}", e.msg.to_lowercase()));
        error.subject = Some(pattern.to_owned());
        error
    })
}

fn unlisted(folder: &Path, error: &object_store::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("could not list {folder}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    #[test]
    fn patterns_match_paths() {
        let names =
            ["a/x.parquet", "a/b/x.parquet", "a/b/c/x.parquet", "y=2024/x", "y=2034/x", "y=2104/x", "a/[1].csv"];
        let store = InMemory::new();
        futures::executor::block_on(async {
            for name in names {
                store.put(&Path::parse(name).unwrap(), "1".into()).await.unwrap();
            }
            let of = async |path: &str| {
                let (base, pattern) = split(path).unwrap();
                let found = files(&store, Path::parse(base).unwrap(), pattern).await?;
                Ok::<_, Error>(found.into_iter().map(String::from).collect::<Vec<_>>())
            };
            assert_eq!(of("a/*.parquet").await.unwrap(), ["a/x.parquet"]);
            assert_eq!(of("a/*/*.parquet").await.unwrap(), ["a/b/x.parquet"]);
            assert_eq!(of("*/b/x.*").await.unwrap(), ["a/b/x.parquet"]);
            assert_eq!(of("a/**/x.parquet").await.unwrap(), ["a/b/c/x.parquet", "a/b/x.parquet", "a/x.parquet"]);
            assert_eq!(of("y=20[123]?/*").await.unwrap(), ["y=2024/x", "y=2034/x"]);
            assert_eq!(of("y=20[!12]?/*").await.unwrap(), ["y=2034/x"]);
            assert_eq!(of("a/[[]1].csv").await.unwrap(), ["a/[1].csv"]);
            assert_eq!(of("nosuch/*").await.unwrap(), Vec::<String>::new());
            assert!(of("a/[x").await.unwrap_err().to_string().contains("invalid pattern"));
            // Many stars take no time that grows with their number's power.
            assert_eq!(of(&format!("a/{}b", "*a".repeat(40))).await.unwrap(), Vec::<String>::new());
        });
    }
}
