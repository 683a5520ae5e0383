//! Free placement: the least loaded volume, as in the Mark 6 recorder.
use super::{Placement, VolumeLoad};

/// Takes the volume with the fewest bytes waiting, in turn when equal.
#[derive(Debug)]
pub(crate) struct Free {
    turn: usize,
}

impl Free {
    /// Begins with this volume, modulo their number.
    pub(crate) fn beginning_with(turn: usize) -> Self {
        Self { turn }
    }
}

impl Placement for Free {
    fn choose(&mut self, _stream: u32, volumes: &[VolumeLoad]) -> Option<usize> {
        let count = volumes.len();
        let best = (0..count)
            .map(|step| (self.turn + step) % count)
            .filter(|&volume| volumes[volume].usable)
            .min_by_key(|&volume| volumes[volume].bytes_waiting)?;
        self.turn = (best + 1) % count;
        Some(best)
    }
}
