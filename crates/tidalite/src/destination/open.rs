//! Opens the destination that a user gave.

use super::{BACKUPS, Destination, Folder, objects};
use crate::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;
use tidalite_storage::fs::os::OsFs;

/// All top-level names of backups at a destination.
const OURS: [&str; 6] = [BACKUPS, "log", "manifests", "rows", "segments", "symbols"];

/// Opens the folder or URL that a user gave; a missing folder is created if `is_new` is true.
///
/// # Errors
/// Fails if it cannot be reached or has files other than backups, and, unless `is_new`, if it does not exist.
pub fn open(text: &str, is_new: bool) -> Result<Box<dyn Destination>> {
    let destination: Box<dyn Destination> = match text.split_once("://") {
        Some((scheme, _)) if objects::SCHEMES.contains(&scheme) => Box::new(objects::open(text)?),
        Some(("file", path)) => Box::new(folder(path, is_new)?),
        Some((scheme, _)) => {
            let message = format!(
                "{scheme}:// is no destination that this build can reach: give a folder, s3://, gs:// or az://"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        None => Box::new(folder(text, is_new)?),
    };
    let names = destination.list("")?;
    // A first backup that was interrupted has left files without a list.
    if !names.is_empty() && !names.iter().any(|name| OURS.contains(&name.as_str())) {
        let message = format!("{text} has files in it that are no backups: give a folder of their own to backups");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if names.is_empty() && !is_new {
        return Err(Error::new(ErrorKind::NotFound, format!("there are no backups in {text}")));
    }
    Ok(destination)
}

fn folder(path: &str, is_new: bool) -> Result<Folder> {
    if path.is_empty() {
        return Err(Error::new(ErrorKind::Invalid, "the destination is empty"));
    }
    let io = |e| Error::from(tidalite_storage::Error::io("use", Path::new(path), e));
    if is_new {
        std::fs::create_dir_all(path).map_err(io)?;
    }
    if !Path::new(path).is_dir() {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no folder {path}")));
    }
    Ok(Folder::new(Arc::new(OsFs::new(path)), path.to_owned()))
}
