//! Pinned placement: every stream on its own disk, as in the acoustic camera's recorder.
use super::{Placement, VolumeLoad};

/// Stream `s` goes to volume `s mod n`; if that failed, to the next one that works.
#[derive(Debug)]
pub(crate) struct Pinned;

impl Placement for Pinned {
    fn choose(&mut self, stream: u32, volumes: &[VolumeLoad]) -> Option<usize> {
        let count = volumes.len();
        (0..count).map(|step| (stream as usize + step) % count).find(|&volume| volumes[volume].usable)
    }
}
