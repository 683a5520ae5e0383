//! Targets of a replay: name, limits, and preparation.
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_sys::engine::{EngineChoice, FILES_MAX};
use keepup_sys::file::{
    Access, Durability, direct_alignment, direct_alignment_in, open_file, open_to_read, set_length,
};
use keepup_workload::Context;
use keepup_workload::scratch::Scratch;

use crate::backend::{FileTarget, MemoryTarget, NullTarget, Target, TargetFile, ThrottledTarget};
use crate::error::ReplayError;
use crate::map::Policy;
use crate::script::{DevicePart, Script};

/// Direct I/O alignment where the system does not report it, bytes.
const USUAL_BLOCK_BYTES: u64 = 4096;

/// Destination of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetSpec {
    /// A temporary file in this directory.
    Volume(PathBuf),
    /// One temporary file for each device of the trace, in these directories.
    Assigned(Vec<(String, PathBuf)>),
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
            Self::Assigned(places) => {
                let places = places.iter().map(|(device, path)| format!("{device}={}", path.display()));
                f.write_str(&places.collect::<Vec<_>>().join(" + "))
            }
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
            Self::Assigned(places) => places
                .iter()
                .map(|(_, path)| direct_alignment_in(path))
                .reduce(|a, b| Some(a?.max(b?)))
                .flatten(),
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
        let (longest, mut scratch) = (script.longest(), Vec::new());
        let target: Box<dyn Target> = match self {
            Self::Null => Box::new(NullTarget::default()),
            Self::Memory => Box::new(MemoryTarget::new(longest)),
            Self::Throttled(rate) => Box::new(ThrottledTarget::new(Arc::clone(&context.clock), *rate)),
            Self::Device(path) => {
                let file = Arc::new(open_to_read(path, io.access)?);
                let file = TargetFile { begin: 0, file, path: path.clone(), durable: None };
                Box::new(FileTarget::open(vec![file], io.engine, (longest, script.unit()), depth)?)
            }
            Self::Volume(_) | Self::Assigned(_) => {
                let mut files = Vec::new();
                for (number, (volume, begin, bytes)) in self.directories(script).into_iter().enumerate() {
                    let mut directory = Scratch::create(volume, &format!("{name}-{number}"))?;
                    files.push(new_file(&mut directory, (begin, bytes), script, io)?);
                    scratch.push(directory);
                }
                let piece = longest.max(crate::map::EXTENT_BYTES as usize);
                let mut target = FileTarget::open(files, io.engine, (piece, script.unit()), depth)?;
                target.fill(script.touched(), &|| context.stop.load(Ordering::Acquire))?;
                if io.check {
                    target.log_writes();
                }
                Box::new(target)
            }
        };
        Ok(OpenTarget { name: self.to_string(), target, has_run: false, _scratch: scratch })
    }

    /// Directories of temporary files for `script`, each with its first address and its length in bytes.
    pub(crate) fn directories(&self, script: &Script) -> Vec<(&Path, u64, u64)> {
        match self {
            Self::Volume(volume) => vec![(volume, 0, script.target_bytes)],
            Self::Assigned(places) => {
                let place = |part: &DevicePart| {
                    let (_, path) = places.iter().find(|(device, _)| *device == part.device)?;
                    Some((path.as_path(), part.begin, part.bytes))
                };
                script.parts.iter().filter_map(place).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A file of `bytes` bytes for the addresses from `begin`.
fn new_file(
    scratch: &mut Scratch,
    (begin, bytes): (u64, u64),
    script: &Script,
    io: IoOptions,
) -> Result<TargetFile, ReplayError> {
    let path = scratch.file("target");
    let file = Arc::new(open_file(&path, io.access, Durability::Flushed)?);
    set_length(&file, &path, bytes)?;
    let is_ordered = script.summary.ordered_writes > 0;
    let durable = is_ordered.then(|| open_file(&path, io.access, Durability::EachWrite));
    Ok(TargetFile { begin, file, path, durable: durable.transpose()?.map(Arc::new) })
}

/// An open target; its files are removed with it.
pub(crate) struct OpenTarget {
    pub(crate) name: String,
    pub(crate) target: Box<dyn Target>,
    /// Whether a pass has run on it.
    pub(crate) has_run: bool,
    // Declared after the target, which has the files open.
    _scratch: Vec<Scratch>,
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
    if let TargetSpec::Assigned(places) = place {
        check_assigned(script, places).map_err(|(what, hint)| unfit(what, &hint))?;
    }
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

/// Checks that each device of the trace has a directory and that addresses stay what they are.
fn check_assigned(script: &Script, places: &[(String, PathBuf)]) -> Result<(), (String, String)> {
    let named = |name: &str| places.iter().any(|(device, _)| device == name);
    if let Some(part) = script.parts.iter().find(|part| !named(&part.device)) {
        let what = format!("no directory is assigned to its device {}", part.device);
        return Err((what, format!("--assign {}=DIR, or --device for one of several devices", part.device)));
    }
    let is_used = |name: &String| script.parts.iter().any(|part| part.device == *name);
    if let Some((device, _)) = places.iter().find(|(device, _)| !is_used(device)) {
        let names: Vec<&str> = script.parts.iter().take(20).map(|part| part.device.as_str()).collect();
        let what = format!("it has no requests to a device {device}");
        return Err((what, format!("its devices: {}", names.join(", "))));
    }
    let files = if script.summary.ordered_writes > 0 { 2 } else { 1 };
    if script.parts.len() * files > FILES_MAX {
        let (devices, most) = (script.parts.len(), FILES_MAX / files);
        let what = format!("it has {devices} devices; at most {most} can have directories of their own");
        return Err((what, "--device NAME, one at a time".into()));
    }
    if script.summary.map.policy != Policy::Identity.name() || script.summary.map.left_out > 0 {
        let what = "with --assign, each device keeps its addresses".to_owned();
        return Err((what, "omit --map and --size".into()));
    }
    Ok(())
}
