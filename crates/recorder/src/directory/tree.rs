//! A directory with its subdirectories: which of them are watched, and under which paths.
//!
//! Invariants: a directory is watched before it is listed, so a file is in the listing or its completion is
//! reported; no symbolic link is followed, and no other file system entered; reports are translated in the
//! order of the changes, and each with the paths of that moment.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{BorrowedFd, OwnedFd};

use keepup_sources::directory::{DirectoryAddress, Identity};
use rustix::fs::{Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::scan::{Scan, at, identity, open_directory, stat};
use super::watch::{Kind, Report, Watch};

/// A change in the directory. Names are relative paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A file was closed after writing.
    Closed(Vec<u8>),
    /// A name was created. It may be a link to a complete file, which nobody closes.
    Created(Vec<u8>),
    /// A name was moved here. Both halves of a rename have the same cookie.
    MovedIn(Vec<u8>, u32),
    /// A name was moved away.
    MovedOut(Vec<u8>, u32),
    /// A name was removed.
    Removed(Vec<u8>),
    /// A subdirectory is new: it was created, or moved in with its files.
    DirectoryIn(Vec<u8>),
    /// A subdirectory was renamed.
    DirectoryRenamed {
        /// Its previous path.
        from: Vec<u8>,
        /// Its new path.
        to: Vec<u8>,
        /// Whether the new path had another directory, which was replaced or exchanged with it.
        is_exchanged: bool,
    },
    /// A subdirectory was moved out.
    DirectoryOut(Vec<u8>),
    /// The kernel has dropped reports.
    Overflow,
    /// The directory itself was moved.
    Relocated,
    /// The file system of the directory was unmounted.
    Gone(&'static str),
}

/// The directory, and the watches on it and its subdirectories.
pub(super) struct Tree {
    address: DirectoryAddress,
    root: OwnedFd,
    device: u64,
    watch: Watch,
    /// Path of each watched directory; the empty path is the directory itself.
    paths: HashMap<i32, Vec<u8>>,
    watches: BTreeMap<Vec<u8>, i32>,
    /// First halves of renames of directories, by their cookie.
    halves: HashMap<u32, Vec<u8>>,
}

impl Tree {
    /// Watches the directory itself.
    pub(super) fn new(address: DirectoryAddress, root: OwnedFd) -> rustix::io::Result<Self> {
        let watch = Watch::new(address.is_recursive)?;
        let first = watch.add(&root, true)?;
        let (paths, watches) = (HashMap::from([(first, Vec::new())]), BTreeMap::from([(Vec::new(), first)]));
        let device = rustix::fs::fstat(&root)?.st_dev;
        Ok(Self { address, root, device, watch, paths, watches, halves: HashMap::new() })
    }

    /// Readable when something has changed.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// The directory itself.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Looks at a name without following a symbolic link.
    pub(super) fn stat(&self, name: &[u8]) -> rustix::io::Result<Stat> {
        at(&self.root, name, |directory, name| stat(directory, name))
    }

    /// Opens a file.
    pub(super) fn open(&self, name: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        at(&self.root, name, |directory, name| rustix::fs::openat(directory, name, flags, Mode::empty()))
    }

    /// Takes reports; a part of them if there are many. [`Tree::change`] translates them in this order.
    pub(super) fn reports(&mut self) -> rustix::io::Result<Vec<Report>> {
        let reports = self.watch.reports()?;
        let of = |kind: Kind| reports.iter().filter(move |report| report.is_directory && report.kind == kind);
        let moved_in: HashSet<u32> = of(Kind::MovedIn).map(|report| report.cookie).collect();
        let pairs = of(Kind::MovedOut).filter(|report| moved_in.contains(&report.cookie));
        self.halves = pairs.map(|report| (report.cookie, Vec::new())).collect();
        Ok(reports)
    }

    /// The change that a report is about; `None` if it is about nothing that is recorded.
    pub(super) fn change(&mut self, report: Report) -> Option<Change> {
        if report.kind == Kind::Overflow {
            return Some(Change::Overflow);
        }
        let directory = self.paths.get(&report.watch)?;
        let is_root = directory.is_empty();
        let path = match is_root {
            true => report.name,
            false => [directory, &b"/"[..], &report.name].concat(),
        };
        match report.kind {
            Kind::Unmounted if is_root => Some(Change::Gone("its file system was unmounted")),
            Kind::Ended if is_root => Some(Change::Gone("the kernel has ended the watch")),
            Kind::Relocated if is_root => Some(Change::Relocated),
            Kind::Ended => {
                let directory = self.paths.remove(&report.watch)?;
                self.watches.remove(&directory);
                None
            }
            Kind::Unmounted | Kind::Relocated | Kind::Overflow => None,
            kind if report.is_directory => self.directory_change(kind, path, report.cookie),
            Kind::Closed => Some(Change::Closed(path)),
            Kind::Created => Some(Change::Created(path)),
            Kind::MovedIn => Some(Change::MovedIn(path, report.cookie)),
            Kind::MovedOut => Some(Change::MovedOut(path, report.cookie)),
            Kind::Removed => Some(Change::Removed(path)),
        }
    }

    fn directory_change(&mut self, kind: Kind, path: Vec<u8>, cookie: u32) -> Option<Change> {
        let is_wanted = self.address.wants_directory(&path);
        match kind {
            Kind::Created => is_wanted.then_some(Change::DirectoryIn(path)),
            Kind::Removed => {
                self.forget(&path);
                None
            }
            Kind::MovedOut => match self.halves.get_mut(&cookie) {
                Some(from) => {
                    *from = path;
                    None
                }
                None => self.forget(&path).then_some(Change::DirectoryOut(path)),
            },
            Kind::MovedIn => {
                let is_watched = |from: &Vec<u8>| !from.is_empty() && self.watches.contains_key(from);
                let from = self.halves.remove(&cookie).filter(is_watched);
                match (from, is_wanted) {
                    (Some(from), true) => {
                        let is_exchanged = self.forget(&path);
                        self.rename(&from, &path);
                        Some(Change::DirectoryRenamed { from, to: path, is_exchanged })
                    }
                    (Some(from), false) => {
                        self.forget(&from);
                        Some(Change::DirectoryOut(from))
                    }
                    (None, true) => Some(Change::DirectoryIn(path)),
                    (None, false) => None,
                }
            }
            _ => None,
        }
    }

    /// Whether a subdirectory is watched.
    pub(super) fn is_watched(&self, path: &[u8]) -> bool {
        self.watches.contains_key(path)
    }

    /// Paths of a watched directory and of those in it.
    fn below(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let (first, behind) = ([path, b"/"].concat(), [path, b"0"].concat());
        let itself = self.watches.get_key_value(path);
        itself.into_iter().chain(self.watches.range(first..behind)).map(|(path, _)| path.clone()).collect()
    }

    /// Ends the watches on a directory and on those in it. Returns whether there was one.
    fn forget(&mut self, path: &[u8]) -> bool {
        let all = self.below(path);
        for watch in all.iter().filter_map(|path| self.watches.remove(path)) {
            self.paths.remove(&watch);
            self.watch.remove(watch);
        }
        !all.is_empty()
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        for path in self.below(from) {
            if let Some(watch) = self.watches.remove(&path) {
                let renamed = [to, &path[from.len()..]].concat();
                self.paths.insert(watch, renamed.clone());
                self.watches.insert(renamed, watch);
            }
        }
    }

    /// Lists a directory, and watches and lists those in it if they are recorded. A name that is removed
    /// meanwhile is left out.
    ///
    /// # Errors
    /// The directory itself cannot be listed; one in it is noted in the result.
    pub(super) fn scan(&mut self, start: &[u8]) -> rustix::io::Result<Scan> {
        let mut scan = Scan::default();
        let (mut todo, mut seen) = (vec![start.to_vec()], HashSet::new());
        while let Some(path) = todo.pop() {
            match self.enter(&path, &mut scan) {
                Ok(inner) => todo.extend(inner),
                // Removed, renamed or replaced meanwhile: reports about it follow.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => {}
                Err(error) if !path.is_empty() => {
                    scan.unreadable.get_or_insert((path.clone(), error));
                }
                Err(error) => return Err(error),
            }
            seen.insert(path);
        }
        if start.is_empty() {
            let gone = self.watches.keys().filter(|path| !seen.contains(*path)).cloned().collect::<Vec<_>>();
            for path in gone {
                self.forget(&path);
            }
        }
        scan.files.sort_by(|a, b| (a.1.mtime_ns, &a.0).cmp(&(b.1.mtime_ns, &b.0)));
        Ok(scan)
    }

    /// Lists the files of the directories that are watched.
    ///
    /// # Errors
    /// The directory itself cannot be listed; one in it that cannot is left out.
    pub(super) fn files(&self) -> rustix::io::Result<Vec<(Vec<u8>, Identity)>> {
        let mut scan = Scan::default();
        list(&self.root, b"", &self.address, &mut scan)?;
        for path in self.watches.keys().filter(|path| !path.is_empty()) {
            // Removed or renamed meanwhile: reports about its files follow.
            let _ = open_directory(&self.root, path)
                .and_then(|directory| list(&directory, path, &self.address, &mut scan));
        }
        Ok(scan.files)
    }

    /// Watches and lists one directory. Returns the paths of the wanted ones in it.
    fn enter(&mut self, path: &[u8], scan: &mut Scan) -> rustix::io::Result<Vec<Vec<u8>>> {
        if path.is_empty() {
            return list(&self.root, path, &self.address, scan);
        }
        let directory = open_directory(&self.root, path)?;
        if rustix::fs::fstat(&directory)?.st_dev != self.device {
            scan.directories += 1;
            return Ok(Vec::new());
        }
        match self.watch.add(&directory, false) {
            Ok(watch) if self.has_other_name(watch, path, &directory) => {
                scan.directories += 1;
                return Ok(Vec::new());
            }
            Ok(watch) => self.enter_watch(watch, path, scan),
            Err(Errno::NOSPC | Errno::NOMEM) => scan.unwatched += 1,
            Err(error) => return Err(error),
        }
        list(&directory, path, &self.address, scan)
    }

    /// Whether a directory is in the tree under another path as well, by a bind mount.
    fn has_other_name(&self, watch: i32, path: &[u8], directory: &OwnedFd) -> bool {
        let known = self.paths.get(&watch).filter(|known| *known != path);
        let open = |known: &Vec<u8>| match known.is_empty() {
            true => rustix::fs::fstat(&self.root),
            false => rustix::fs::fstat(open_directory(&self.root, known)?),
        };
        let inode = rustix::fs::fstat(directory).map(|stat| stat.st_ino).ok();
        known.is_some_and(|known| open(known).map(|stat| stat.st_ino).ok() == inode)
    }

    /// Enters the watch on a directory, which may have been watched under another path.
    fn enter_watch(&mut self, watch: i32, path: &[u8], scan: &mut Scan) {
        match self.paths.get(&watch).cloned() {
            Some(known) if known == path => return,
            Some(known) => {
                self.forget(path);
                self.rename(&known, path);
                scan.renamed.push((known, path.to_vec()));
                return;
            }
            None => {}
        }
        if let Some(old) = self.watches.insert(path.to_vec(), watch) {
            self.paths.remove(&old);
            self.watch.remove(old);
        }
        self.paths.insert(watch, path.to_vec());
    }
}

/// Looks at every wanted name in a directory. Returns the paths of the wanted directories in it.
fn list(
    directory: &OwnedFd,
    path: &[u8],
    address: &DirectoryAddress,
    scan: &mut Scan,
) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut inner = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let below = if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() };
        let mut kind = entry.file_type();
        let is_known = kind == FileType::Directory || !address.wants(name);
        let found = if is_known && kind != FileType::Unknown { None } else { stat(directory, name).ok() };
        kind = found.as_ref().map_or(kind, |stat| FileType::from_raw_mode(stat.st_mode));
        match (kind, found) {
            (FileType::Directory, _) if address.wants_directory(&below) => inner.push(below),
            (FileType::Directory, _) => scan.directories += 1,
            (FileType::RegularFile, Some(stat)) if address.wants(name) => {
                scan.files.push((below, identity(&stat)));
            }
            (_, Some(_)) if address.wants(name) => scan.irregular.push(below),
            _ => {}
        }
    }
    Ok(inner)
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
