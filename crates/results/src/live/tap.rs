//! Copies of events for those who only look.

/// Which events somebody wants copies of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapFilter {
    /// Of these streams; of all, when there is none.
    pub streams: Vec<u32>,
    /// Only events whose sequence number is a multiple of this; 0 and 1 are all.
    pub every: u64,
    /// At most so many a second, over all its streams; as many as come when nothing is said.
    pub per_second: Option<f64>,
}

impl TapFilter {
    /// Whether events of a stream are wanted at all.
    pub fn is_of(&self, stream: u32) -> bool {
        self.streams.is_empty() || self.streams.contains(&stream)
    }
}
