//! Sequence numbers from the `uniqueId` of images.
//!
//! Images arrive in order over TCP. A jump forwards is therefore a loss, and a jump backwards a new start of
//! the detector's counter, with unknown losses. The 32-bit counter wraps around.

/// Numbers of the images so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// `uniqueId` of the last image.
    pub(super) last: Option<i32>,
    /// Sequence number of the next image without a gap.
    next: u64,
    /// Times that the counter started again.
    pub(super) restarts: u64,
    /// Images with the number of the image before.
    pub(super) repeats: u64,
}

impl Numbers {
    /// Sequence number of the image `unique_id`, and the numbers with this image.
    pub(super) fn with(mut self, unique_id: i32) -> (u64, Self) {
        match self.last.map(|last| unique_id.wrapping_sub(last)) {
            None => {}
            Some(0) => self.repeats += 1,
            Some(step) => match u64::try_from(step) {
                Ok(step) => self.next = self.next.saturating_add(step - 1),
                Err(_) => self.restarts += 1,
            },
        }
        let sequence = self.next;
        (sequence, Self { last: Some(unique_id), next: sequence.saturating_add(1), ..self })
    }
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
