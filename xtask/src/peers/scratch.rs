//! Scratch directories of a campaign, and checks of their free space.
//!
//! Invariant: only directories created here are removed, even after an error.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use keepup_measure::space::Space;

/// Prefix of the directory name, followed by the process id.
const PREFIX: &str = "keepup-peers-";
/// Space needed in addition to the data: preallocated segments and the reserve of volumes.
const SPARE_BYTES: u64 = 4 << 30;

/// Directory that is removed recursively when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Parent directory, if created here.
    created_parent: Option<PathBuf>,
}

impl Scratch {
    /// Creates the campaign directory below `volume`, and `volume` if missing.
    pub(super) fn below(volume: &Path) -> Result<Self> {
        let is_new = !volume.exists();
        fs::create_dir_all(volume).with_context(|| format!("make {}", volume.display()))?;
        let volume = volume.canonicalize().with_context(|| format!("find {}", volume.display()))?;
        abandoned(&volume).iter().for_each(|directory| {
            eprintln!("note: {} is left from an interrupted campaign; remove it", directory.display());
        });
        let mut scratch = Self::make(volume.join(format!("{PREFIX}{}", std::process::id())))?;
        scratch.created_parent = is_new.then_some(volume);
        Ok(scratch)
    }

    /// Creates an empty subdirectory.
    pub(super) fn within(&self, name: &str) -> Result<Self> {
        Self::make(self.path.join(name))
    }

    fn make(path: PathBuf) -> Result<Self> {
        fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self { path, created_parent: None })
    }

    /// Path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if there is not enough free space for a run of `bytes`.
    pub(super) fn check_free_space(&self, bytes: u64) -> Result<()> {
        let free_bytes = Space::of(&self.path)?.free_bytes;
        // Nearly full file systems are slow, and the recorder refuses them.
        let needed_bytes = bytes + bytes / 10 + SPARE_BYTES;
        if free_bytes < needed_bytes {
            bail!(
                "{} has {:.1} GB free, a run needs {:.1} GB\nhint: use a smaller run or another --volume",
                self.path.display(),
                free_bytes as f64 / 1e9,
                needed_bytes as f64 / 1e9
            );
        }
        Ok(())
    }

    /// Removes the directory and waits for the file system, so that the next run is not affected.
    pub(super) fn remove(self) {
        let above = self.path.parent().map(Path::to_path_buf);
        drop(self);
        // Not every file system supports fsync on directories.
        drop(above.and_then(|above| File::open(above).ok()).map(|above| above.sync_all()));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.path) {
            eprintln!("warning: cannot remove {}: {why}", self.path.display());
        }
        if let Some(above) = &self.created_parent {
            // Fails if another program uses it meanwhile.
            drop(fs::remove_dir(above));
        }
    }
}

/// Directories of campaigns whose process has ended.
fn abandoned(volume: &Path) -> Vec<PathBuf> {
    let is_left = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
    };
    let entries = fs::read_dir(volume).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_left).collect()
}

#[cfg(test)]
#[path = "scratch_tests.rs"]
mod tests;
