//! The data folder and its lock.

use crate::{Error, ErrorKind, Result};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

const LOCK: &str = "lock";

/// Creates the folder if it does not exist and locks it for this process, as long as the file is open.
pub(crate) fn create_and_lock(data: &Path) -> Result<File> {
    std::fs::create_dir_all(data).map_err(|e| refused("create", data, &e))?;
    let file = File::create(data.join(LOCK)).map_err(|e| refused("lock", data, &e))?;
    lock(data, &file)?;
    Ok(file)
}

/// Locks an existing folder, including one on a read-only disk. Returns `None` if it was never in use.
pub(crate) fn lock_existing(data: &Path) -> Result<Option<File>> {
    if !data.is_dir() {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no data folder {}", data.display())));
    }
    let file = match File::open(data.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|e| refused("lock", data, &e))?,
    };
    lock(data, &file)?;
    Ok(Some(file))
}

fn lock(data: &Path, file: &File) -> Result<()> {
    file.try_lock().map_err(|e| match e {
        TryLockError::WouldBlock => {
            let message = format!("data folder {} is in use by another process", data.display());
            let mut error = Error::new(ErrorKind::Conflict, message);
            error.hint = Some("stop the other process, or connect to it instead of opening its folder".to_owned());
            error
        }
        TryLockError::Error(e) => refused("lock", data, &e),
    })
}

fn refused(what: &str, data: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("could not {what} data folder {}: {error}", data.display()))
}
