//! Checks of volumes before the first write: writability, free space, and warnings.
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_measure::disk::Device;
use keepup_measure::space::{Space, is_memory_backed};
use keepup_results::shell::quoted;

use crate::WorkloadError;
use crate::error::VolumeTrouble;
use crate::leftover;

/// Reserve on every volume, as a share of its size, at most [`RESERVE_BYTES_MAX`].
const RESERVE_SHARE: f64 = 0.05;
const RESERVE_BYTES_MAX: u64 = 10 << 30;
/// System directories, which are refused as volumes.
const SYSTEM: [&str; 9] = ["/", "/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/sys", "/usr"];

/// A volume that passed the checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Directory.
    pub path: PathBuf,
    /// Usable bytes: free space minus the reserve.
    pub usable_bytes: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Refuses volumes that are missing, unsafe, not writable, or have less than `bytes_needed` beyond
/// the reserve.
pub fn check(volumes: &[PathBuf], bytes_needed: u64) -> Result<Vec<Checked>, WorkloadError> {
    let checked: Vec<Checked> =
        volumes.iter().map(|v| check_one(v, bytes_needed)).collect::<Result<_, _>>()?;
    let mut seen = std::collections::BTreeSet::new();
    for volume in volumes {
        let real = std::fs::canonicalize(volume).unwrap_or_else(|_| volume.clone());
        if !seen.insert(real) {
            return Err(refuse(volume, VolumeTrouble::Missing, "it is listed twice"));
        }
    }
    Ok(checked)
}

/// The same for volumes used concurrently with `bytes_each` on each; volumes on one file system
/// share its free space.
pub fn check_together(volumes: &[PathBuf], bytes_each: u64) -> Result<Vec<Checked>, WorkloadError> {
    let checked = check(volumes, 0)?;
    for volume in volumes {
        check_one(volume, bytes_each.saturating_mul(sharing(volume, volumes)))?;
    }
    Ok(checked)
}

/// Usable bytes per volume when all are used equally.
pub fn usable_bytes_each(checked: &[Checked]) -> u64 {
    let volumes: Vec<PathBuf> = checked.iter().map(|one| one.path.clone()).collect();
    checked.iter().map(|one| one.usable_bytes / sharing(&one.path, &volumes)).min().unwrap_or(0)
}

/// Number of `volumes` on the file system of `volume`, including itself.
fn sharing(volume: &Path, volumes: &[PathBuf]) -> u64 {
    let here = device(volume);
    let others = volumes.iter().filter(|other| here.is_some() && device(other) == here);
    (others.count() as u64).max(1)
}

/// Device number of a directory's file system.
pub(crate) fn device(directory: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(directory).ok().map(|found| found.dev())
}

fn refuse(path: &Path, trouble: VolumeTrouble, why: impl Into<Cause>) -> WorkloadError {
    WorkloadError::Volume { path: path.into(), why: why.into(), trouble }
}

fn check_one(path: &Path, bytes_needed: u64) -> Result<Checked, WorkloadError> {
    let real = std::fs::canonicalize(path).map_err(|e| {
        let hint = format!("mkdir -p {}", quoted(&path.display().to_string()));
        refuse(path, VolumeTrouble::Missing, Cause::new(e.to_string()).with_hint(hint))
    })?;
    if !real.is_dir() {
        return Err(refuse(path, VolumeTrouble::Missing, "it is not a directory"));
    }
    let text = real.to_string_lossy();
    let beneath = |system: &&str| **system != *"/" && text.starts_with(&format!("{system}/"));
    if SYSTEM.iter().any(|system| *text == **system || beneath(system)) {
        let why = Cause::new("it is a system directory").with_hint("choose a user directory");
        return Err(refuse(path, VolumeTrouble::Unsafe, why));
    }
    probe(&real).map_err(|e| refuse(path, VolumeTrouble::Unable, format!("it cannot be written to: {e}")))?;
    let space = Space::of(&real)?;
    let reserve = ((space.total_bytes as f64 * RESERVE_SHARE) as u64).min(RESERVE_BYTES_MAX);
    let usable_bytes = space.free_bytes.saturating_sub(reserve);
    if usable_bytes < bytes_needed {
        let mb = |bytes: u64| bytes / 1_000_000;
        let why = format!(
            "{} MB are needed and {} MB may be used ({} MB free, {} MB reserved)",
            mb(bytes_needed),
            mb(usable_bytes),
            mb(space.free_bytes),
            mb(reserve)
        );
        let why = Cause::new(why).with_hint("free space there, or another directory");
        return Err(refuse(path, VolumeTrouble::Unable, why));
    }
    if space.free_inodes.is_some_and(|free| free < 64) {
        return Err(refuse(path, VolumeTrouble::Unable, "it has fewer than 64 free inodes"));
    }
    let mut warnings = Vec::new();
    if is_memory_backed(Path::new("/"), &real)? {
        warnings.push(format!("{} is in memory, not on a disk ({})", path.display(), space.fs_type));
    }
    warnings.extend(leftover::warning(path));
    Ok(Checked { path: path.into(), usable_bytes, warnings })
}

/// Warns about volumes that share a disk and therefore its throughput.
pub fn common_disks(volumes: &[PathBuf]) -> Vec<String> {
    let disks = |volume: &PathBuf| Device::under(Path::new("/"), volume).map_or(Vec::new(), |d| d.disks);
    let all: Vec<(&PathBuf, Vec<String>)> = volumes.iter().map(|volume| (volume, disks(volume))).collect();
    let mut shared = Vec::new();
    for (n, (volume, disks)) in all.iter().enumerate() {
        let sharing = all[..n].iter().find(|(_, earlier)| disks.iter().any(|disk| earlier.contains(disk)));
        if let Some((other, _)) = sharing {
            let names = disks.join(", ");
            shared.push(format!(
                "{} and {} are on the same disk ({names}) and share its throughput",
                other.display(),
                volume.display()
            ));
        }
    }
    shared
}

/// Creates and removes a file, which is more reliable than permission bits.
fn probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!(".keepup-probe-{}", std::process::id()));
    std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)
}

#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
