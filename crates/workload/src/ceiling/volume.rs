//! Volume ceiling: writes blocks from memory with the recorder's engine into preallocated segments,
//! including the final flush.
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::histogram::Latency;
use keepup_sys::SysError;
use keepup_sys::engine::EngineChoice;
use keepup_sys::file::{Access, Durability, open_file};

use crate::file_io::mode::Mode;
use crate::file_io::{Point, Series};
use crate::scratch::Scratch;
use crate::{Context, Footprint, Workload, WorkloadError};

/// Parameters of the measurement.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Volume.
    pub volume: PathBuf,
    /// Block size, bytes.
    pub block_bytes: usize,
    /// Queue depth.
    pub depth: usize,
    /// Segment size, bytes.
    pub segment_bytes: u64,
    /// Maximum bytes written.
    pub bytes_max: u64,
    /// I/O engine.
    pub engine: EngineChoice,
    /// Duration.
    pub time: Duration,
}

/// Writes until the time or byte limit.
#[derive(Debug)]
pub struct VolumeCeiling {
    spec: VolumeSpec,
    name: String,
    scratch: Option<Scratch>,
    bytes: u64,
    bytes_per_second: f64,
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeMeasured {
    /// Durable bytes per second, including the last flush.
    pub bytes_per_second: f64,
    /// Bytes written.
    pub bytes: u64,
}

impl VolumeCeiling {
    /// A measurement with a temporary directory `name` on the volume.
    pub fn new(spec: VolumeSpec, name: String) -> Self {
        Self { spec, name, scratch: None, bytes: 0, bytes_per_second: 0.0 }
    }
}

/// Direct access, or buffered where the file system lacks direct I/O, like the recorder.
fn access(probe: &Path) -> Result<Access, WorkloadError> {
    match open_file(probe, Access::Direct, Durability::Flushed) {
        Ok(_) => Ok(Access::Direct),
        Err(SysError::NotDirect { .. }) => Ok(Access::Buffered),
        Err(error) => Err(error.into()),
    }
}

impl Workload for VolumeCeiling {
    type Measured = VolumeMeasured;
    type Error = WorkloadError;

    fn name(&self) -> &'static str {
        "volume"
    }

    fn plan(&self) -> Footprint {
        let bytes = [(self.spec.volume.clone(), self.spec.bytes_max)];
        Footprint { bytes_written: bytes.clone().into(), space_bytes: bytes.into(), time: self.spec.time }
    }

    fn prepare(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        self.scratch = Some(Scratch::create(&self.spec.volume, &self.name)?);
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let (Some(scratch), spec) = (&mut self.scratch, &self.spec) else { return Ok(()) };
        let mode = Mode { access: access(&scratch.file("probe"))?, engine: spec.engine, ..Mode::default() };
        let files = spec.bytes_max.div_ceil(spec.segment_bytes).max(1);
        let paths = (0..files).map(|n| scratch.file(&format!("block-{n:06}"))).collect();
        let point = Point { bytes: spec.block_bytes, depth: spec.depth };
        let mut series = Series::new(&mode, point, spec.segment_bytes, paths)?;
        let end_bytes = spec.bytes_max / spec.block_bytes as u64 * spec.block_bytes as u64;
        let (clock, mut latency) = (context.clock.as_ref(), Latency::new());
        let begin_ns = clock.now_ns();
        let end_ns = begin_ns + spec.time.as_nanos() as u64;
        while !context.stop.load(Ordering::Acquire) {
            while series.start(end_bytes, clock)? {}
            let now_ns = clock.now_ns();
            if now_ns >= end_ns || (series.is_idle() && series.started_bytes() >= end_bytes) {
                break;
            }
            let left = Duration::from_nanos(end_ns - now_ns);
            series.wait(left.min(Duration::from_secs(1)), clock, &mut latency)?;
        }
        series.finish(clock, &mut latency)?;
        self.bytes = series.done_bytes();
        let elapsed_ns = clock.now_ns() - begin_ns;
        self.bytes_per_second = self.bytes as f64 / (elapsed_ns.max(1) as f64 / 1e9);
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        self.scratch = None;
        Ok(())
    }

    fn measured(&mut self) -> Result<VolumeMeasured, WorkloadError> {
        Ok(VolumeMeasured { bytes_per_second: self.bytes_per_second, bytes: self.bytes })
    }
}
