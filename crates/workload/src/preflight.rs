//! Looks at volumes before the first byte: may they be written to, is there room, and what should the user
//! know.
use std::path::{Path, PathBuf};

use keepup_measure::disk::Device;
use keepup_measure::space::{Space, is_memory_backed};

use crate::WorkloadError;
use crate::error::VolumeTrouble;

/// Space left alone on every volume: this share of it, at most [`RESERVE_BYTES_MAX`].
const RESERVE_SHARE: f64 = 0.05;
const RESERVE_BYTES_MAX: u64 = 10 << 30;
/// Directories that belong to the system; a volume is never one of them.
const SYSTEM: [&str; 9] = ["/", "/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr"];

/// A volume that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The directory.
    pub path: PathBuf,
    /// What may be written to it, in bytes: free space less the reserve.
    pub usable_bytes: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Refuses volumes that are missing, unsafe, not writable, or have less than `bytes_needed` beyond the
/// reserve.
pub fn check(volumes: &[PathBuf], bytes_needed: u64) -> Result<Vec<Checked>, WorkloadError> {
    let checked: Vec<Checked> =
        volumes.iter().map(|v| check_one(v, bytes_needed)).collect::<Result<_, _>>()?;
    let mut seen = std::collections::BTreeSet::new();
    for volume in volumes {
        let real = std::fs::canonicalize(volume).unwrap_or_else(|_| volume.clone());
        if !seen.insert(real) {
            return Err(refuse(volume, VolumeTrouble::Missing, "it is given twice".into()));
        }
    }
    Ok(checked)
}

/// The same for volumes that are used at the same time, `bytes_each` on every one of them: those on one file
/// system share its room.
pub fn check_together(volumes: &[PathBuf], bytes_each: u64) -> Result<Vec<Checked>, WorkloadError> {
    let checked = check(volumes, 0)?;
    for volume in volumes {
        check_one(volume, bytes_each.saturating_mul(sharing(volume, volumes)))?;
    }
    Ok(checked)
}

/// What each of these volumes may take when all of them take the same, in bytes.
pub fn room_each(checked: &[Checked]) -> u64 {
    let volumes: Vec<PathBuf> = checked.iter().map(|one| one.path.clone()).collect();
    checked.iter().map(|one| one.usable_bytes / sharing(&one.path, &volumes)).min().unwrap_or(0)
}

/// How many of `volumes` lie on the file system of `volume`, itself included.
fn sharing(volume: &Path, volumes: &[PathBuf]) -> u64 {
    let here = device(volume);
    let others = volumes.iter().filter(|other| here.is_some() && device(other) == here);
    (others.count() as u64).max(1)
}

/// The file system that a directory is on.
pub(crate) fn device(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(directory).ok().map(|found| found.dev())
}

fn refuse(path: &Path, trouble: VolumeTrouble, why: String) -> WorkloadError {
    WorkloadError::Volume { path: path.into(), why, trouble }
}

fn check_one(path: &Path, bytes_needed: u64) -> Result<Checked, WorkloadError> {
    let real = std::fs::canonicalize(path).map_err(|e| {
        refuse(path, VolumeTrouble::Missing, format!("{e}\nhint: mkdir -p {}", path.display()))
    })?;
    if !real.is_dir() {
        return Err(refuse(path, VolumeTrouble::Missing, "it is not a directory".into()));
    }
    let text = real.to_string_lossy();
    let beneath = |system: &&str| **system != *"/" && text.starts_with(&format!("{system}/"));
    if SYSTEM.iter().any(|system| *text == **system || beneath(system)) {
        let why = "it belongs to the system\nhint: choose a directory of your own".into();
        return Err(refuse(path, VolumeTrouble::Unsafe, why));
    }
    probe(&real).map_err(|e| refuse(path, VolumeTrouble::Unable, format!("it cannot be written to: {e}")))?;
    let space = Space::of(&real)?;
    let reserve = ((space.total_bytes as f64 * RESERVE_SHARE) as u64).min(RESERVE_BYTES_MAX);
    let usable_bytes = space.free_bytes.saturating_sub(reserve);
    if usable_bytes < bytes_needed {
        let mb = |bytes: u64| bytes / 1_000_000;
        let why = format!(
            "{} MB are needed and {} MB may be used ({} MB free, {} MB left alone)\n\
             hint: free space there, or another directory",
            mb(bytes_needed),
            mb(usable_bytes),
            mb(space.free_bytes),
            mb(reserve)
        );
        return Err(refuse(path, VolumeTrouble::Unable, why));
    }
    if space.free_inodes.is_some_and(|free| free < 64) {
        return Err(refuse(path, VolumeTrouble::Unable, "it has fewer than 64 free inodes".into()));
    }
    let mut warnings = Vec::new();
    if is_memory_backed(Path::new("/"), &real)? {
        warnings.push(format!("{} is in memory, not on a disk ({})", path.display(), space.fs_type));
    }
    Ok(Checked { path: path.into(), usable_bytes, warnings })
}

/// Says which volumes have a disk in common, so that they cannot be faster together for that reason alone.
pub fn common_disks(volumes: &[PathBuf]) -> Vec<String> {
    let disks = |volume: &PathBuf| Device::under(Path::new("/"), volume).map_or(Vec::new(), |d| d.disks);
    let all: Vec<(&PathBuf, Vec<String>)> = volumes.iter().map(|volume| (volume, disks(volume))).collect();
    let mut told = Vec::new();
    for (n, (volume, disks)) in all.iter().enumerate() {
        let sharing = all[..n].iter().find(|(_, earlier)| disks.iter().any(|disk| earlier.contains(disk)));
        if let Some((other, _)) = sharing {
            let names = disks.join(", ");
            told.push(format!(
                "{} and {} lie on one disk ({names}): they share its rate",
                other.display(),
                volume.display()
            ));
        }
    }
    told
}

/// Makes and removes a file, which says more than permission bits do.
fn probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!(".keepup-probe-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
