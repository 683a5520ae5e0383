//! Memory copy ceiling: the cost of each additional copy of a byte.
use std::time::Duration;

use crate::{Context, Footprint, Workload, WorkloadError};

const BUFFER_BYTES: usize = 64 << 20;

/// Single-threaded copy between two buffers larger than the caches.
#[derive(Debug)]
pub struct MemoryCeiling {
    time: Duration,
    bytes_per_second: f64,
}

impl MemoryCeiling {
    /// A measurement of `time`.
    pub fn new(time: Duration) -> Self {
        Self { time, bytes_per_second: 0.0 }
    }
}

impl Workload for MemoryCeiling {
    type Measured = f64;
    type Error = WorkloadError;

    fn name(&self) -> &'static str {
        "memory copy"
    }

    fn plan(&self) -> Footprint {
        Footprint { time: self.time, ..Footprint::default() }
    }

    fn prepare(&mut self, _context: &mut Context) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measure(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        let (source, mut target) = (vec![0x5au8; BUFFER_BYTES], vec![0u8; BUFFER_BYTES]);
        target.copy_from_slice(&source);
        let begin_ns = context.clock.now_ns();
        let (mut bytes, mut elapsed_ns) = (0u64, 0);
        while u128::from(elapsed_ns) < self.time.as_nanos() {
            target.copy_from_slice(&source);
            std::hint::black_box(&mut target);
            bytes += BUFFER_BYTES as u64;
            elapsed_ns = context.clock.now_ns() - begin_ns;
        }
        self.bytes_per_second = bytes as f64 / (elapsed_ns.max(1) as f64 / 1e9);
        Ok(())
    }

    fn clean_up(&mut self) -> Result<(), WorkloadError> {
        Ok(())
    }

    fn measured(&mut self) -> Result<f64, WorkloadError> {
        Ok(self.bytes_per_second)
    }
}
