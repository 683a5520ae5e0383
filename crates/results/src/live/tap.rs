//! Selection of live event copies.

/// Events that a subscriber wants copies of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TapFilter {
    /// Streams; empty for all.
    pub streams: Vec<u32>,
    /// Only events with a sequence number that is a multiple of this; 0 and 1 mean all.
    pub every: u64,
    /// Maximum number per second over all streams; unlimited if absent.
    pub per_second: Option<f64>,
}

impl TapFilter {
    /// Whether any event of a stream is selected.
    pub fn is_of(&self, stream: u32) -> bool {
        self.streams.is_empty() || self.streams.contains(&stream)
    }
}
