//! The folders of the simulated disk: as shown by the system, as stored on the disk, and the unsynced changes.

use super::rng::Rng;
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File(u64),
}

/// The root is the empty path and always exists.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    folders: BTreeMap<PathBuf, Folder>,
    root: Folder,
}

#[derive(Clone, Debug, Default)]
struct Folder {
    entries: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    unsynced: Vec<NameChange>,
}

/// One change of a folder: a removed name, then an added name.
#[derive(Clone, Debug)]
struct NameChange {
    unset: Option<String>,
    set: Option<(String, Node)>,
}

impl NameChange {
    fn apply(&self, entries: &mut BTreeMap<String, Node>) {
        if let Some(name) = &self.unset {
            entries.remove(name);
        }
        if let Some((name, node)) = &self.set {
            entries.insert(name.clone(), *node);
        }
    }
}

impl Folder {
    fn change(&mut self, unset: Option<&str>, set: Option<(&str, Node)>) {
        let change =
            NameChange { unset: unset.map(str::to_owned), set: set.map(|(name, node)| (name.to_owned(), node)) };
        change.apply(&mut self.entries);
        self.unsynced.push(change);
    }

    /// Returns possible names on the disk after a power loss.
    fn settle(&self, rng: &mut Rng) -> BTreeMap<String, Node> {
        let mut entries = self.durable.clone();
        let way = rng.below(3);
        let prefix = rng.below(self.unsynced.len() + 1);
        for (at, change) in self.unsynced.iter().enumerate() {
            let survives = match way {
                0 => true,
                1 => at < prefix,
                _ => rng.below(2) == 1,
            };
            if survives {
                change.apply(&mut entries);
            }
        }
        entries
    }
}

impl Names {
    pub fn create(&mut self, path: &Path, node: Node) -> io::Result<()> {
        let (dir, name) = split(path)?;
        let folder = self.folder_mut(&dir)?;
        if folder.entries.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        folder.change(None, Some((&name, node)));
        Ok(())
    }

    pub fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        let dir = normal(dir)?;
        let ancestors: Vec<&Path> = dir.ancestors().filter(|a| !a.as_os_str().is_empty()).collect();
        for ancestor in ancestors.into_iter().rev() {
            if !self.folders.contains_key(ancestor) {
                self.create(ancestor, Node::Folder)?;
                self.folders.insert(ancestor.to_owned(), Folder::default());
            }
        }
        Ok(())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = Node::File(self.file(from)?);
        let ((from_dir, from_name), (to_dir, to_name)) = (split(from)?, split(to)?);
        if self.folder(&to_dir)?.entries.get(&to_name) == Some(&Node::Folder) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if from_dir == to_dir {
            self.folder_mut(&to_dir)?.change(Some(&from_name), Some((&to_name, node)));
        } else {
            self.folder_mut(&to_dir)?.change(None, Some((&to_name, node)));
            self.folder_mut(&from_dir)?.change(Some(&from_name), None);
        }
        Ok(())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = split(path)?;
        let Some(node) = self.folder(&dir)?.entries.get(&name).copied() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if node == Node::Folder {
            let path = normal(path)?;
            if !self.folder(&path)?.entries.is_empty() {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            self.folders.remove(&path);
        }
        self.folder_mut(&dir)?.change(Some(&name), None);
        Ok(())
    }

    pub fn sync(&mut self, dir: &Path) -> io::Result<()> {
        let folder = self.folder_mut(&normal(dir)?)?;
        folder.durable.clone_from(&folder.entries);
        folder.unsynced.clear();
        Ok(())
    }

    pub fn file(&self, path: &Path) -> io::Result<u64> {
        let (dir, name) = split(path)?;
        match self.folder(&dir)?.entries.get(&name) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub fn list(&self, dir: &Path) -> Vec<String> {
        let folder = normal(dir).ok().and_then(|dir| self.folder(&dir).ok());
        folder.map_or_else(Vec::new, |folder| folder.entries.keys().cloned().collect())
    }

    /// Returns the files that have a name.
    pub fn files(&self) -> Vec<u64> {
        let folders = self.folders.values().chain([&self.root]);
        let file = |node: &Node| if let Node::File(id) = node { Some(*id) } else { None };
        let mut files: Vec<u64> = folders.flat_map(|f| f.entries.values().filter_map(file)).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Returns the files that have a name or may have one again after a power loss.
    pub fn reachable(&self) -> Vec<u64> {
        let folders = self.folders.values().chain([&self.root]);
        let nodes = folders.flat_map(|f| {
            let changed = f.unsynced.iter().filter_map(|change| change.set.as_ref().map(|(_, node)| node));
            f.entries.values().chain(f.durable.values()).chain(changed)
        });
        let mut files: Vec<u64> =
            nodes.filter_map(|node| if let Node::File(id) = node { Some(*id) } else { None }).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Returns possible folders on the disk after a power loss.
    pub fn survivor(&self, rng: &mut Rng) -> Names {
        let mut survivor = Names::default();
        let mut left = vec![PathBuf::new()];
        while let Some(dir) = left.pop() {
            // If the removal of a folder is lost, the folder returns without its content.
            let entries = self.folder(&dir).map(|folder| folder.settle(rng)).unwrap_or_default();
            let folders = entries.iter().filter(|(_, node)| **node == Node::Folder);
            left.extend(folders.map(|(name, _)| dir.join(name)));
            let folder = Folder { durable: entries.clone(), entries, unsynced: Vec::new() };
            if dir.as_os_str().is_empty() {
                survivor.root = folder;
            } else {
                survivor.folders.insert(dir, folder);
            }
        }
        survivor
    }

    fn folder(&self, dir: &Path) -> io::Result<&Folder> {
        let folder = if dir.as_os_str().is_empty() { Some(&self.root) } else { self.folders.get(dir) };
        folder.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn folder_mut(&mut self, dir: &Path) -> io::Result<&mut Folder> {
        let folder = if dir.as_os_str().is_empty() { Some(&mut self.root) } else { self.folders.get_mut(dir) };
        folder.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Removes `.` from the path. Paths that leave the data folder are rejected.
fn normal(path: &Path) -> io::Result<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
    }
    Ok(out)
}

fn split(path: &Path) -> io::Result<(PathBuf, String)> {
    let path = normal(path)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    Ok((path.parent().map(Path::to_owned).unwrap_or_default(), name))
}
