//! Where a trace is replayed: what it is called, what it can take, and its target made ready.
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_sys::engine::EngineChoice;
use keepup_sys::file::{
    Access, Durability, direct_alignment, direct_alignment_in, open_file, open_to_read, set_length,
};

use super::error::ReplayError;
use super::script::Script;
use super::target::{FileTarget, MemoryTarget, NullTarget, Target, ThrottledTarget};
use crate::scratch::Scratch;
use crate::{Context, WorkloadError};

/// What direct transfers are multiples of where the system does not tell, bytes.
const USUAL_BLOCK_BYTES: u64 = 4096;

/// Where requests go.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// A file of our own in this directory.
    Volume(PathBuf),
    /// This block device, which is only read.
    Device(PathBuf),
    /// Nowhere: what is left is the cost and the time of keepup itself.
    Null,
    /// Main memory.
    Memory,
    /// A made-up disk of so many bytes per second.
    Throttled(f64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(path) | Self::Device(path) => write!(f, "{}", path.display()),
            Self::Null => f.write_str("null"),
            Self::Memory => f.write_str("memory"),
            Self::Throttled(rate) => write!(f, "throttled={:.0} MB/s", rate / 1e6),
        }
    }
}

/// How requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// By which engine.
    pub engine: EngineChoice,
    /// Past the page cache, or through it.
    pub access: Access,
    /// Whether it is checked in the end that what was written is there.
    pub check: bool,
}

impl Place {
    /// The smallest piece that it takes with such `access`, bytes; a power of two.
    pub fn block_bytes(&self, access: Access) -> u64 {
        let told = match self {
            _ if access == Access::Buffered => Some(1),
            Self::Volume(path) => direct_alignment_in(path),
            Self::Device(path) => open_to_read(path, access).ok().and_then(|file| direct_alignment(&file)),
            Self::Null | Self::Memory | Self::Throttled(_) => Some(1),
        };
        told.map_or(USUAL_BLOCK_BYTES, u64::from)
    }

    /// Size of a device, bytes; nothing for what is as large as the trace needs it.
    ///
    /// # Errors
    /// When it cannot be opened, or is no block device.
    pub fn size_bytes(&self) -> Result<Option<u64>, WorkloadError> {
        let Self::Device(path) = self else { return Ok(None) };
        keepup_sys::file::device_bytes(path).map(Some).map_err(WorkloadError::from)
    }

    /// Makes a target for `script`, with a file named after `name`, which is filled where anything will be
    /// read.
    pub(super) fn open(
        &self,
        script: &Script,
        means: Means,
        (name, depth): (&str, usize),
        context: &Context,
    ) -> Result<Seat, WorkloadError> {
        let longest = script.longest();
        let (target, scratch): (Box<dyn Target>, _) = match self {
            Self::Null => (Box::new(NullTarget::default()), None),
            Self::Memory => (Box::new(MemoryTarget::new(longest)), None),
            Self::Throttled(rate) => {
                (Box::new(ThrottledTarget::new(Arc::clone(&context.clock), *rate)), None)
            }
            Self::Device(path) => {
                let file = Arc::new(open_to_read(path, means.access)?);
                let unit = script.unit();
                (Box::new(FileTarget::open((file, path), means.engine, (longest, unit), depth)?), None)
            }
            Self::Volume(volume) => {
                let mut scratch = Scratch::create(volume, name)?;
                let path = scratch.file("target");
                let file = Arc::new(open_file(&path, means.access, Durability::Flushed)?);
                set_length(&file, &path, script.target_bytes)?;
                let piece = longest.max(super::map::EXTENT_BYTES as usize);
                let ours = (file, path.as_path());
                let mut target = FileTarget::open(ours, means.engine, (piece, script.unit()), depth)?;
                target.fill(script.touched(), &|| context.stop.load(Ordering::Acquire))?;
                if means.check {
                    target.log_writes();
                }
                (Box::new(target), Some(scratch))
            }
        };
        Ok(Seat { name: self.to_string(), target, _scratch: scratch })
    }
}

/// A target that is ready; its file goes with it.
pub(super) struct Seat {
    pub(super) name: String,
    pub(super) target: Box<dyn Target>,
    // Behind the target, which has the file open.
    _scratch: Option<Scratch>,
}

/// Whether `script` can be replayed at `place` by such means.
///
/// # Errors
/// When writes would go to a device, or a check is asked for that cannot be had.
pub fn check_place(script: &Script, place: &Place, means: Means) -> Result<(), ReplayError> {
    let unfit = |what: String, hint: &str| ReplayError::Unfit {
        trace: script.told.trace.clone(),
        what,
        hint: hint.into(),
    };
    let is_read_only = matches!(place, Place::Device(_));
    if is_read_only && script.told.writes + script.told.flushes > 0 {
        let what = format!("it writes, and {place} is only read");
        return Err(unfit(what, "--reads-only leaves writes out; a file system has --volume"));
    }
    if means.check && means.access == Access::Buffered {
        return Err(unfit("through the page cache a check would read the cache".into(), "--access direct"));
    }
    Ok(())
}
