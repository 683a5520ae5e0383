//! Requests are copies within main memory: the fastest target that moves bytes.
use std::time::Duration;

use keepup_trace::{Operation, Record};
use keepup_workload::random_data::{SEED, fill_random};

use super::{Done, NullTarget, Target};
use crate::error::ReplayError;

/// Memory that addresses are taken modulo of, bytes: more than a cache of processors holds, and more than
/// any request.
const MEMORY_BYTES: usize = 256 << 20;

/// Copies every request, and ends it at once.
#[derive(Debug)]
pub(crate) struct MemoryTarget {
    memory: Vec<u8>,
    piece: Vec<u8>,
    rest: NullTarget,
}

impl MemoryTarget {
    /// For requests of up to `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        let (mut memory, mut piece) = (vec![0; MEMORY_BYTES], vec![0; longest]);
        fill_random(&mut memory, SEED);
        fill_random(&mut piece, !SEED);
        Self { memory, piece, rest: NullTarget::default() }
    }
}

impl Target for MemoryTarget {
    fn start(&mut self, record: &Record, index: usize, token: usize) -> Result<bool, ReplayError> {
        if matches!(record.operation, Operation::Flush | Operation::Discard) {
            return self.rest.start(record, index, token);
        }
        let bytes = record.bytes as usize;
        let at = (record.offset as usize % MEMORY_BYTES).min(MEMORY_BYTES - bytes);
        match record.operation {
            Operation::Read => self.piece[..bytes].copy_from_slice(&self.memory[at..at + bytes]),
            _ => self.memory[at..at + bytes].copy_from_slice(&self.piece[..bytes]),
        }
        std::hint::black_box(&mut self.piece);
        self.rest.start(record, index, token)
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError> {
        self.rest.wait(timeout, done)
    }
}
