//! Restores a recording from an archive.
//!
//! Invariants: a file has its name only when it is whole, checked against its SHA-256 and durable; the
//! manifest of the first volume comes last, so that a directory with one is whole; nothing that the archive
//! does not list is changed.
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use keepup_measure::clock::Clock;
use keepup_measure::space::Space;
use keepup_recording::manifest::MANIFEST_FILE;
use keepup_recording::master::write_master;
use keepup_recording::reader::Recording;
use keepup_sys::file::sync_directory;
use keepup_sys::regular::open as open_regular;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::counters::ArchiveCounters;
use crate::download::{Download, download};
use crate::error::ArchiveError;
use crate::inventory::{
    ArchivedFile, INVENTORY_BYTES_MAX, INVENTORY_FILE, Inventory, MANIFEST_BYTES_MAX, hex, split_path,
};
use crate::pace::Pace;
use crate::store::{Location, Store};

/// Suffix of a file that is not whole.
const FRESH: &str = ".new";
/// Attempts to receive a file with the right checksum.
const ATTEMPTS: u32 = 3;

/// Settings of a restore.
#[derive(Clone, Debug)]
pub struct RestorePlan {
    /// Address of the archive.
    pub from: Location,
    /// Directory of the recording; new, empty, or left by an interrupted restore.
    pub to: PathBuf,
    /// Rate limit in bytes per second; `None` means unlimited.
    pub rate: Option<f64>,
    /// Most requests in flight, each for `part_bytes`.
    pub connections: usize,
    /// Size of a request, bytes: [`PART_BYTES`](crate::PART_BYTES).
    pub part_bytes: u64,
}

/// Result of a restore.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreReport {
    /// Name of the recording.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Files of the archive.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of those that an interrupted restore had received.
    pub known_bytes: u64,
    /// Total elapsed time, seconds.
    pub seconds: f64,
}

/// Restores a recording; every file is checked against its SHA-256.
///
/// # Errors
/// The archive has no inventory or a damaged one, an object is missing or has another checksum, the directory
/// has other files or too little space, or `stop` was set. Whole files are kept and not received again.
pub fn restore(
    plan: &RestorePlan,
    clock: &dyn Clock,
    stop: &AtomicBool,
    live: &ArchiveCounters,
) -> Result<RestoreReport, ArchiveError> {
    let begin_ns = clock.now_ns();
    let (store, inventory) = match (open(&plan.from), plan.from.earlier()) {
        (Err(error), Some(earlier)) => open(&earlier).map_err(|_| error)?,
        (opened, _) => opened?,
    };
    check_manifest(&store, &inventory)?;
    prepare(&plan.to, &inventory)?;
    live.total_bytes.store(inventory.bytes(), Ordering::Relaxed);
    let connections = plan.connections.clamp(1, crate::CONNECTIONS_MAX);
    let download = Download { store: &store, clock, stop, connections, part_bytes: plan.part_bytes };
    let pace = Pace::new(plan.rate, begin_ns);
    let mut run = RestoreRun { plan, download, pace, live };
    let waiting = run.find_waiting(&inventory)?;
    let needed_bytes = waiting.iter().map(|file| file.bytes).fold(0, u64::saturating_add);
    if let Ok(Space { free_bytes, .. }) = Space::of(&plan.to)
        && free_bytes < needed_bytes
    {
        return Err(ArchiveError::Space { path: plan.to.clone(), needed_bytes, free_bytes });
    }
    let (manifests, others): (Vec<_>, Vec<_>) =
        waiting.into_iter().partition(|file| split_path(&file.path).is_some_and(|(_, n)| n == MANIFEST_FILE));
    for file in others {
        run.receive(file)?;
    }
    let mut manifests: Vec<_> = manifests;
    manifests.sort_by_key(|file| std::cmp::Reverse(split_path(&file.path)));
    for file in manifests {
        run.receive(file)?;
    }
    // The original's file for h5py leads to the original's volumes.
    if let Err(error) = Recording::open(std::slice::from_ref(&plan.to)).and_then(|found| write_master(&found))
    {
        live.warn(error.to_string());
    }
    Ok(RestoreReport {
        name: inventory.name.clone(),
        directory: plan.to.clone(),
        files: inventory.files.len() as u64,
        bytes: inventory.bytes(),
        known_bytes: live.known_bytes.load(Ordering::Relaxed),
        seconds: clock.now_ns().saturating_sub(begin_ns) as f64 / 1e9,
    })
}

fn open(from: &Location) -> Result<(Store, Inventory), ArchiveError> {
    let store = Store::open(from, None)?;
    let inventory = read_inventory(&store)?;
    Ok((store, inventory))
}

/// Checks that the manifest is of the recording of the inventory, before anything is written.
fn check_manifest(store: &Store, inventory: &Inventory) -> Result<(), ArchiveError> {
    let text = match store.get(MANIFEST_FILE, MANIFEST_BYTES_MAX)? {
        Some(Ok(text)) => text,
        _ => Vec::new(),
    };
    let found: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
    if found.is_some_and(|found| found["recording"] == inventory.recording.to_string()) {
        return Ok(());
    }
    let what = "keepup.json belongs to a different recording".to_owned();
    Err(ArchiveError::Inventory { url: store.location.to_string(), what })
}

fn read_inventory(store: &Store) -> Result<Inventory, ArchiveError> {
    let url = || store.location.to_string();
    let text = match store.get(INVENTORY_FILE, INVENTORY_BYTES_MAX)? {
        None => return Err(ArchiveError::NotAnArchive { url: url() }),
        Some(text) => text.map_err(|what| ArchiveError::Inventory { url: url(), what })?,
    };
    Inventory::parse(&text).map_err(|what| ArchiveError::Inventory { url: url(), what })
}

/// Creates the directories; refuses those with anything that the archive does not list.
fn prepare(to: &Path, inventory: &Inventory) -> Result<(), ArchiveError> {
    let mut directories: BTreeSet<&Path> = BTreeSet::from([Path::new("")]);
    let mut files = BTreeSet::new();
    for file in &inventory.files {
        let path = Path::new(&file.path);
        directories.extend(path.parent());
        files.extend([path.to_path_buf(), fresh(path)]);
    }
    for directory in &directories {
        let path = to.join(directory);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            outcome => outcome.map_err(ArchiveError::io("create the directory", &path))?,
        }
        let occupied = |what: String| ArchiveError::Occupied { path: to.to_path_buf(), what };
        let meta = fs::symlink_metadata(&path).map_err(ArchiveError::io("inspect", &path))?;
        let is_target = directory.as_os_str().is_empty() && path.is_dir();
        if !meta.is_dir() && !is_target {
            return Err(occupied(format!("{} is not a directory", path.display())));
        }
        for entry in fs::read_dir(&path).map_err(ArchiveError::io("list", &path))? {
            let name = directory.join(entry.map_err(ArchiveError::io("list", &path))?.file_name());
            if name == Path::new(MANIFEST_FILE) {
                return Err(occupied("it has a recording".to_owned()));
            } else if !files.contains(&name) && !directories.contains(name.as_path()) {
                return Err(occupied(format!(
                    "it has {}, which is not a file of this archive",
                    name.display()
                )));
            }
        }
    }
    Ok(())
}

/// Temporary name of a file.
fn fresh(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(FRESH);
    name.into()
}

/// A restore in progress.
struct RestoreRun<'a> {
    plan: &'a RestorePlan,
    download: Download<'a>,
    pace: Pace,
    live: &'a ArchiveCounters,
}

impl RestoreRun<'_> {
    /// Files that an interrupted restore did not receive.
    fn find_waiting<'i>(&self, inventory: &'i Inventory) -> Result<Vec<&'i ArchivedFile>, ArchiveError> {
        let mut waiting = Vec::new();
        for file in &inventory.files {
            let path = self.plan.to.join(&file.path);
            let is_there = fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() == file.bytes);
            if is_there && self.hash(&path)? == file.sha256 {
                self.live.add_known(file.bytes);
            } else {
                waiting.push(file);
            }
        }
        Ok(waiting)
    }

    fn hash(&self, path: &Path) -> Result<String, ArchiveError> {
        let mut file = open_regular(path).map_err(ArchiveError::io("open", path))?;
        let (mut sha256, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
        loop {
            match file.read(&mut buffer) {
                _ if self.download.stop.load(Ordering::Acquire) => return Err(ArchiveError::Stopped),
                Ok(0) => return Ok(hex(&sha256.finalize())),
                Ok(bytes) => sha256.update(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ArchiveError::io("read", path)(error)),
            }
        }
    }

    /// Receives a file under a temporary name, checks it and renames it.
    fn receive(&mut self, file: &ArchivedFile) -> Result<(), ArchiveError> {
        let path = self.plan.to.join(&file.path);
        let temporary = fresh(&path);
        let mut found = String::new();
        for _ in 0..ATTEMPTS {
            let mut out = create(&temporary)?;
            let mut sha256 = Sha256::new();
            let live = self.live;
            download(&self.download, &file.path, file.bytes, &mut self.pace, &mut |part| {
                sha256.update(part);
                live.add_done(part.len() as u64);
                out.write_all(part).map_err(ArchiveError::io("write", &temporary))
            })?;
            found = hex(&sha256.finalize());
            if found == file.sha256 {
                return publish(&out, file, &temporary, &path);
            }
            live.subtract_done(file.bytes);
            live.warn(format!("{}: checksum mismatch; receiving it again", file.path));
        }
        let object = format!("{}/{}", self.download.store.location, file.path);
        let what = format!("SHA-256 is {found} instead of {}", file.sha256);
        Err(ArchiveError::Mismatch { doing: "restore", object, what })
    }
}

fn create(path: &Path) -> Result<File, ArchiveError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ArchiveError::io("remove", path)(error));
        }
        _ => {}
    }
    File::create_new(path).map_err(ArchiveError::io("create", path))
}

/// Gives a whole file its time, permissions and name, durably.
fn publish(out: &File, file: &ArchivedFile, temporary: &Path, path: &Path) -> Result<(), ArchiveError> {
    let is_sealed = path.extension().is_some_and(|extension| extension == "mcap");
    let mode = Permissions::from_mode(if is_sealed { 0o444 } else { 0o644 });
    let modified = UNIX_EPOCH + Duration::from_nanos(file.modified_unix_ns);
    let named = out
        .set_permissions(mode)
        .and_then(|()| out.set_modified(modified))
        .and_then(|()| out.sync_all())
        .and_then(|()| fs::rename(temporary, path));
    named.map_err(ArchiveError::io("write", path))?;
    Ok(sync_directory(path.parent().unwrap_or(Path::new(".")))?)
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
