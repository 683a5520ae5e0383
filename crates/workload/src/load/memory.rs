//! Memory load: copies between buffers larger than the caches; each copied byte counts as one read
//! and one written.
use std::hint::black_box;

use super::pace::Pacer;
use super::{LoadGenerator, LoadRun};
use crate::{Context, WorkloadError};

/// Total buffer memory, larger than CPU caches; half is read, half is written.
const BUFFER_BYTES: usize = 512 << 20;
/// Rate per thread; higher rates use more threads, up to one per CPU.
const THREAD_RATE: f64 = 4e9;
/// Target duration of a work unit; its size is bounded by the next constants.
const PIECE_SECONDS: f64 = 0.002;
const PIECE_BYTES: (f64, f64) = (8192.0, 2_097_152.0);

/// State of a memory load.
pub(super) struct MemoryLoad {
    rate: f64,
    buffers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl MemoryLoad {
    /// A load of `rate` bytes per second, reads plus writes.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, buffers: Vec::new() }
    }
}

impl LoadGenerator for MemoryLoad {
    fn prepare(&mut self, _name: &str, _context: &mut Context) -> Result<Vec<String>, WorkloadError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = ((self.rate / THREAD_RATE).ceil() as usize).clamp(1, cores);
        let bytes = BUFFER_BYTES / 2 / threads;
        // Not zeros, which the kernel may map to one shared page.
        self.buffers = (0..threads).map(|_| (vec![0x5a; bytes], vec![0xa5; bytes])).collect();
        Ok(Vec::new())
    }

    fn run(&mut self, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
        let rate = self.rate / self.buffers.len() as f64;
        let Some((first, others)) = self.buffers.split_first_mut() else { return Ok(()) };
        std::thread::scope(|scope| {
            let mut outcome = Ok(());
            for (n, buffers) in others.iter_mut().enumerate() {
                let spawned = std::thread::Builder::new()
                    .name(format!("ku-load-{n}"))
                    .spawn_scoped(scope, move || copy(buffers, rate, run));
                if let Err(source) = spawned {
                    run.stop.store(true, std::sync::atomic::Ordering::Release);
                    outcome = Err(WorkloadError::System { action: "start a load".into(), source });
                }
            }
            copy(first, rate, run);
            outcome
        })
    }
}

/// Copies the buffer in a loop until stopped.
fn copy((source, target): &mut (Vec<u8>, Vec<u8>), rate: f64, run: &LoadRun<'_>) {
    let counted = (rate * PIECE_SECONDS).clamp(PIECE_BYTES.0, PIECE_BYTES.1) as usize;
    let piece = (counted / 2).min(source.len());
    let mut pacer = Pacer::new(2.0 * piece as f64, rate, run.begin_ns);
    let mut at = 0;
    while run.wait(pacer.due_ns()) {
        pacer.begin(run.clock.now_ns());
        if at + piece > source.len() {
            at = 0;
        }
        target[at..at + piece].copy_from_slice(&source[at..at + piece]);
        black_box(&mut target[at]);
        at += piece;
        run.add(2 * piece as u64);
    }
}
