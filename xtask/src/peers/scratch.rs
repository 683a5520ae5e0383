//! Directories of a campaign's own, and the room for them.
//!
//! Invariant: nothing is removed but what was made here, and that is removed also after an error.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use keepup_measure::space::Space;

/// Beginning of the name of a campaign's directory; its process number follows.
const PREFIX: &str = "keepup-peers-";
/// What a run takes beyond its bytes: segments are preallocated one ahead, and volumes keep a reserve.
const SPARE_BYTES: u64 = 4 << 30;

/// A directory that is removed with everything in it when dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// The directory above, when it did not exist before.
    made_above: Option<PathBuf>,
}

impl Scratch {
    /// Makes the campaign's directory below `volume`, and `volume` itself if need be.
    pub(super) fn below(volume: &Path) -> Result<Self> {
        let is_new = !volume.exists();
        fs::create_dir_all(volume).with_context(|| format!("make {}", volume.display()))?;
        let volume = volume.canonicalize().with_context(|| format!("find {}", volume.display()))?;
        left_behind(&volume).iter().for_each(|directory| {
            eprintln!("note: {} was left by a campaign that was cut off; remove it", directory.display());
        });
        let mut scratch = Self::make(volume.join(format!("{PREFIX}{}", std::process::id())))?;
        scratch.made_above = is_new.then_some(volume);
        Ok(scratch)
    }

    /// Makes an empty directory within this one.
    pub(super) fn within(&self, name: &str) -> Result<Self> {
        Self::make(self.path.join(name))
    }

    fn make(path: PathBuf) -> Result<Self> {
        fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        Ok(Self { path, made_above: None })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when there is no room for a run of so many bytes.
    pub(super) fn check_room(&self, bytes: u64) -> Result<()> {
        let free_bytes = Space::of(&self.path)?.free_bytes;
        // File systems become slow, and volumes are refused, when they are nearly full.
        let needed_bytes = bytes + bytes / 10 + SPARE_BYTES;
        if free_bytes < needed_bytes {
            bail!(
                "{} has {:.1} GB free and a run needs {:.1} GB\nhint: a smaller run, or another --volume",
                self.path.display(),
                free_bytes as f64 / 1e9,
                needed_bytes as f64 / 1e9
            );
        }
        Ok(())
    }

    /// Removes it now, and waits until the file system has noted that, so that the next run is not disturbed.
    pub(super) fn remove(self) {
        let above = self.path.parent().map(Path::to_path_buf);
        drop(self);
        // Not every file system can synchronise a directory; then there is nothing to wait for.
        drop(above.and_then(|above| File::open(above).ok()).map(|above| above.sync_all()));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(why) = fs::remove_dir_all(&self.path) {
            eprintln!("warning: cannot remove {}: {why}", self.path.display());
        }
        if let Some(above) = &self.made_above {
            // It stays when somebody else has put something there meanwhile.
            drop(fs::remove_dir(above));
        }
    }
}

/// Directories of campaigns whose process is no more.
fn left_behind(volume: &Path) -> Vec<PathBuf> {
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
