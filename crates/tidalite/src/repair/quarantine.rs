//! The folder that keeps damaged files.

use super::report::RepairReport;
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidalite_storage::fs::Fs;

pub(crate) const QUARANTINE: &str = "quarantine";

/// Size in bytes of the pieces of a copy.
const PIECE_BYTES: usize = 1 << 20;

/// The quarantine of damaged files.
pub(crate) struct Quarantine {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) folder: String,
}

impl Quarantine {
    /// Copies a file, if it exists, with a text that states the reason. Durable on return.
    pub(crate) fn keep(&self, path: &Path, why: &str, report: &mut RepairReport) -> Result<()> {
        report.quarantine.clone_from(&self.folder);
        let fs = &*self.fs;
        let io = |action: &str, path: &Path, e| Error::from(tidalite_storage::Error::io(action, path, e));
        let to = Path::new(&self.folder).join(path);
        let dir = to.parent().unwrap_or(Path::new("")).to_owned();
        fs.create_dir_all(&dir).map_err(|e| io("create", &dir, e))?;
        let mut text = to.clone().into_os_string();
        text.push(".txt");
        self.write(&PathBuf::from(text), &mut why.as_bytes().chunks(PIECE_BYTES).map(|piece| Ok(piece.to_vec())))?;
        if let Ok(file) = fs.open(path) {
            let len = file.len().map_err(|e| io("read", path, e))?;
            let pieces = (0..len).step_by(PIECE_BYTES).map(|at| {
                let mut piece = vec![0; (len - at).min(PIECE_BYTES as u64) as usize];
                // Unreadable bytes are zeros in the copy.
                if file.read_exact_at(&mut piece, at).is_err() {
                    piece.fill(0);
                }
                Ok(piece)
            });
            self.write(&to, &mut { pieces })?;
        }
        dir.ancestors().try_for_each(|dir| fs.sync_dir(dir).map_err(|e| io("sync", dir, e)))
    }

    fn write(&self, to: &Path, pieces: &mut dyn Iterator<Item = Result<Vec<u8>>>) -> Result<()> {
        let io = |action: &str, e| Error::from(tidalite_storage::Error::io(action, to, e));
        // A file of an interrupted attempt.
        let _ = self.fs.remove(to);
        let file = self.fs.create(to).map_err(|e| io("create", e))?;
        let mut at = 0;
        for piece in pieces {
            let piece = piece?;
            file.write_all_at(&piece, at).map_err(|e| io("write", e))?;
            at += piece.len() as u64;
        }
        file.sync().map_err(|e| io("sync", e))
    }
}
