//! Targets of a replay: name, limits, and preparation.
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_sys::engine::EngineChoice;
use keepup_sys::file::{
    Access, Durability, direct_alignment, direct_alignment_in, open_file, open_to_read, set_length,
};
use keepup_workload::Context;
use keepup_workload::scratch::Scratch;

use crate::backend::{FileTarget, MemoryTarget, NullTarget, Target, ThrottledTarget};
use crate::error::ReplayError;
use crate::script::Script;

/// Direct I/O alignment where the system does not report it, bytes.
const USUAL_BLOCK_BYTES: u64 = 4096;

/// Destination of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetSpec {
    /// A temporary file in this directory.
    Volume(PathBuf),
    /// This block device, read-only.
    Device(PathBuf),
    /// Discards requests: measures the cost and timing of keepup itself.
    Null,
    /// Main memory.
    Memory,
    /// A simulated disk with this throughput in bytes per second.
    Throttled(f64),
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(path) | Self::Device(path) => write!(f, "{}", path.display()),
            Self::Null => f.write_str("null"),
            Self::Memory => f.write_str("memory"),
            Self::Throttled(rate) => write!(f, "throttled={:.0} MB/s", rate / 1e6),
        }
    }
}

/// I/O settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoOptions {
    /// I/O engine.
    pub engine: EngineChoice,
    /// Direct or buffered.
    pub access: Access,
    /// Whether written data is verified at the end.
    pub check: bool,
}

impl TargetSpec {
    /// Smallest request with this `access`, bytes; a power of two.
    pub fn block_bytes(&self, access: Access) -> u64 {
        let bytes = match self {
            _ if access == Access::Buffered => Some(1),
            Self::Volume(path) => direct_alignment_in(path),
            Self::Device(path) => open_to_read(path, access).ok().and_then(|file| direct_alignment(&file)),
            Self::Null | Self::Memory | Self::Throttled(_) => Some(1),
        };
        bytes.map_or(USUAL_BLOCK_BYTES, u64::from)
    }

    /// Size of a device, bytes; none for targets sized by the trace.
    ///
    /// # Errors
    /// It cannot be opened or is not a block device.
    pub fn size_bytes(&self) -> Result<Option<u64>, ReplayError> {
        let Self::Device(path) = self else { return Ok(None) };
        keepup_sys::file::device_bytes(path).map(Some).map_err(ReplayError::from)
    }

    /// Opens the target for `script`, with a temporary file `name` that is filled where it will be
    /// read.
    pub(crate) fn open(
        &self,
        script: &Script,
        io: IoOptions,
        (name, depth): (&str, usize),
        context: &Context,
    ) -> Result<OpenTarget, ReplayError> {
        let longest = script.longest();
        let (target, scratch): (Box<dyn Target>, _) = match self {
            Self::Null => (Box::new(NullTarget::default()), None),
            Self::Memory => (Box::new(MemoryTarget::new(longest)), None),
            Self::Throttled(rate) => {
                (Box::new(ThrottledTarget::new(Arc::clone(&context.clock), *rate)), None)
            }
            Self::Device(path) => {
                let file = Arc::new(open_to_read(path, io.access)?);
                let unit = script.unit();
                (Box::new(FileTarget::open((file, path), io.engine, (longest, unit), depth)?), None)
            }
            Self::Volume(volume) => {
                let mut scratch = Scratch::create(volume, name)?;
                let path = scratch.file("target");
                let file = Arc::new(open_file(&path, io.access, Durability::Flushed)?);
                set_length(&file, &path, script.target_bytes)?;
                let piece = longest.max(crate::map::EXTENT_BYTES as usize);
                let ours = (file, path.as_path());
                let mut target = FileTarget::open(ours, io.engine, (piece, script.unit()), depth)?;
                if script.summary.ordered_writes > 0 {
                    target.set_durable_file(Arc::new(open_file(&path, io.access, Durability::EachWrite)?))?;
                }
                target.fill(script.touched(), &|| context.stop.load(Ordering::Acquire))?;
                if io.check {
                    target.log_writes();
                }
                (Box::new(target), Some(scratch))
            }
        };
        Ok(OpenTarget { name: self.to_string(), target, has_run: false, _scratch: scratch })
    }
}

/// An open target; its file is removed with it.
pub(crate) struct OpenTarget {
    pub(crate) name: String,
    pub(crate) target: Box<dyn Target>,
    /// Whether a pass has run on it.
    pub(crate) has_run: bool,
    // Declared after the target, which has the file open.
    _scratch: Option<Scratch>,
}

/// Checks that `script` can be replayed on `place` with these I/O settings.
///
/// # Errors
/// Writes to a device, or verification that is impossible.
pub fn check_target(script: &Script, place: &TargetSpec, io: IoOptions) -> Result<(), ReplayError> {
    let unfit = |what: String, hint: &str| ReplayError::Unfit {
        trace: script.summary.trace.clone(),
        what,
        hint: hint.into(),
    };
    let is_read_only = matches!(place, TargetSpec::Device(_));
    if is_read_only && script.summary.writes + script.summary.flushes + script.summary.discards > 0 {
        let what = format!("it contains writes, but {place} is only read");
        return Err(unfit(what, "skip writes with --reads-only, or use a file system with --volume"));
    }
    if io.check && io.access == Access::Buffered {
        return Err(unfit("with buffered access --check would read the cache".into(), "--access direct"));
    }
    Ok(())
}
