//! Main memory: copies between buffers that no cache holds; each byte that is copied counts twice, since it
//! is read and written.
use std::hint::black_box;

use super::pace::Pacer;
use super::{Load, Shift};
use crate::{Context, WorkloadError};

/// Memory of all threads, half of it read and half written: larger than the caches of processors.
const BUFFER_BYTES: usize = 512 << 20;
/// What one thread copies and is paced well; more has more threads, one for each processor at most.
const THREAD_RATE: f64 = 4e9;
/// Bytes counted at once: what this time brings, within these bounds.
const PIECE_SECONDS: f64 = 0.002;
const PIECE_BYTES: (f64, f64) = (8192.0, 2_097_152.0);

/// The load.
pub(super) struct MemoryLoad {
    rate: f64,
    buffers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl MemoryLoad {
    /// `rate` in bytes per second, read and written together.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, buffers: Vec::new() }
    }
}

impl Load for MemoryLoad {
    fn prepare(&mut self, _name: &str, _context: &mut Context) -> Result<Vec<String>, WorkloadError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = ((self.rate / THREAD_RATE).ceil() as usize).clamp(1, cores);
        let bytes = BUFFER_BYTES / 2 / threads;
        // Not zeros: the kernel may give one page of them many times.
        self.buffers = (0..threads).map(|_| (vec![0x5a; bytes], vec![0xa5; bytes])).collect();
        Ok(Vec::new())
    }

    fn run(&mut self, shift: &Shift<'_>) -> Result<(), WorkloadError> {
        let rate = self.rate / self.buffers.len() as f64;
        let Some((first, others)) = self.buffers.split_first_mut() else { return Ok(()) };
        std::thread::scope(|scope| {
            let mut outcome = Ok(());
            for (n, buffers) in others.iter_mut().enumerate() {
                let spawned = std::thread::Builder::new()
                    .name(format!("ku-load-{n}"))
                    .spawn_scoped(scope, move || copy(buffers, rate, shift));
                if let Err(source) = spawned {
                    shift.stop.store(true, std::sync::atomic::Ordering::Release);
                    outcome = Err(WorkloadError::System { action: "start a load".into(), source });
                }
            }
            copy(first, rate, shift);
            outcome
        })
    }
}

/// Copies from front to end, again and again, until it is to stop.
fn copy((source, target): &mut (Vec<u8>, Vec<u8>), rate: f64, shift: &Shift<'_>) {
    let counted = (rate * PIECE_SECONDS).clamp(PIECE_BYTES.0, PIECE_BYTES.1) as usize;
    let piece = (counted / 2).min(source.len());
    let mut pacer = Pacer::new(2.0 * piece as f64, rate, shift.begin_ns);
    let mut at = 0;
    while shift.wait(pacer.due_ns()) {
        pacer.begin(shift.clock.now_ns());
        if at + piece > source.len() {
            at = 0;
        }
        target[at..at + piece].copy_from_slice(&source[at..at + piece]);
        black_box(&mut target[at]);
        at += piece;
        shift.add(2 * piece as u64);
    }
}
