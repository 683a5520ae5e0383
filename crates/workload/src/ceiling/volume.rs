//! One volume alone: blocks from memory through the recorder's own engine into preallocated segments,
//! durable at the end.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_sys::engine::{BlockEngine, Completion, EngineChoice, FileSlot, open};
use keepup_sys::file::create_preallocated;
use keepup_sys::pool::Pool;
use keepup_sys::waker::Waker;

use super::system;
use crate::data::{SEED, fill_random};
use crate::scratch::Scratch;
use crate::{Context, Footprint, Workload, WorkloadError};

const SYNC_TOKEN: u64 = u64::MAX;
/// Every page of the data is stamped, so that no page is written twice with the same contents.
const PAGE_BYTES: usize = 4096;

/// What is written, and how.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// The volume.
    pub volume: PathBuf,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Blocks under way.
    pub depth: usize,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes written at most.
    pub bytes_max: u64,
    /// How blocks are written.
    pub engine: EngineChoice,
    /// How long it writes.
    pub time: Duration,
}

/// Writes until time or bytes run out.
#[derive(Debug)]
pub struct VolumeCeiling {
    spec: VolumeSpec,
    name: String,
    scratch: Option<Scratch>,
    bytes: u64,
    bytes_per_second: f64,
}

/// What a volume alone did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeMeasured {
    /// Durable bytes per second, the last flush inside the time.
    pub bytes_per_second: f64,
    /// Bytes written.
    pub bytes: u64,
}

struct Writing {
    engine: Box<dyn BlockEngine>,
    pool: Pool,
    file: Option<(FileSlot, u64)>,
    files: u32,
    blocks: u64,
    ended: Vec<Completion>,
}

impl VolumeCeiling {
    /// `name` becomes a directory on the volume for as long as it runs.
    pub fn new(spec: VolumeSpec, name: String) -> Self {
        Self { spec, name, scratch: None, bytes: 0, bytes_per_second: 0.0 }
    }

    fn next_file(&self, path: &Path, writing: &mut Writing) -> Result<FileSlot, WorkloadError> {
        let made = create_preallocated(path, self.spec.segment_bytes)?;
        let slot = writing.engine.add_file(Arc::new(made.file))?;
        writing.file = Some((slot, 0));
        writing.files += 1;
        Ok(slot)
    }

    fn step(&mut self, writing: &mut Writing) -> Result<(), WorkloadError> {
        let room = |at: u64| at + self.spec.block_bytes as u64 <= self.spec.segment_bytes;
        let (slot, offset) = match writing.file.filter(|(_, at)| room(*at)) {
            Some(place) => place,
            None => {
                self.settle(writing)?;
                let name = format!("block-{:06}", writing.files);
                let Some(scratch) = &mut self.scratch else { return Ok(()) };
                let path = scratch.file(&name);
                (self.next_file(&path, writing)?, 0)
            }
        };
        while writing.engine.in_flight() >= self.spec.depth {
            writing.wait(Duration::from_secs(1))?;
        }
        let Some(mut block) = writing.pool.take(self.spec.block_bytes) else { return Ok(()) };
        for page in (0..self.spec.block_bytes).step_by(PAGE_BYTES) {
            block[page..page + 8].copy_from_slice(&writing.blocks.to_le_bytes());
        }
        writing.engine.write(slot, offset, block, self.spec.block_bytes, writing.blocks);
        writing.engine.wait(Duration::ZERO, &mut writing.ended)?;
        writing.blocks += 1;
        writing.file = Some((slot, offset + self.spec.block_bytes as u64));
        self.bytes += self.spec.block_bytes as u64;
        Ok(())
    }

    /// Waits for everything under way and makes the present file durable.
    fn settle(&self, writing: &mut Writing) -> Result<(), WorkloadError> {
        while writing.engine.in_flight() > 0 {
            writing.wait(Duration::from_secs(1))?;
        }
        if let Some((slot, _)) = writing.file.take() {
            writing.engine.sync(slot, SYNC_TOKEN);
            while writing.engine.in_flight() > 0 {
                writing.wait(Duration::from_secs(1))?;
            }
            writing.engine.remove_file(slot);
        }
        Ok(())
    }
}

impl Writing {
    fn wait(&mut self, timeout: Duration) -> Result<(), WorkloadError> {
        self.engine.wait(timeout, &mut self.ended)?;
        for completion in self.ended.drain(..) {
            if let Some(block) = completion.block {
                self.pool.give_back(block);
            }
            completion.result.map_err(system("write to the volume"))?;
        }
        Ok(())
    }
}

impl Workload for VolumeCeiling {
    type Measured = VolumeMeasured;

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
        let mut pool = Pool::new((self.spec.depth + 2) * (self.spec.block_bytes + (64 << 10)))?;
        if let Some(mut all) = pool.take(pool.block_bytes_max()) {
            fill_random(&mut all, SEED);
            pool.give_back(all);
        }
        let (engine, _) = open(self.spec.engine, &pool.memory(), &Waker::new()?, self.spec.depth)?;
        let mut writing = Writing { engine, pool, file: None, files: 0, blocks: 0, ended: Vec::new() };
        let begin_ns = context.clock.now_ns();
        let end_ns = begin_ns + self.spec.time.as_nanos() as u64;
        while context.clock.now_ns() < end_ns
            && self.bytes + self.spec.block_bytes as u64 <= self.spec.bytes_max
            && !context.stop.load(Ordering::Acquire)
        {
            self.step(&mut writing)?;
        }
        self.settle(&mut writing)?;
        let elapsed_ns = context.clock.now_ns() - begin_ns;
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
