//! Constant-time map from stream id to table index: one array read per event.

use super::StreamInfo;

/// Marks an undeclared id; indexes are below 65535.
const NONE: u16 = u16::MAX;

/// Dense map from stream id to the stream's index in the declared table.
#[derive(Debug, Default)]
pub(crate) struct StreamIndex {
    position: Vec<u16>,
}

impl StreamIndex {
    /// Builds the map of a validated table (ids below 65536, at most 65535 streams).
    pub(crate) fn new(streams: &[StreamInfo]) -> StreamIndex {
        let end = streams.iter().map(|s| s.id as usize + 1).max().unwrap_or(0);
        let mut position = vec![NONE; end];
        for (at, stream) in streams.iter().enumerate() {
            position[stream.id as usize] = at as u16;
        }
        StreamIndex { position }
    }

    /// Index of stream `id`, if it was declared.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<usize> {
        match self.position.get(id as usize) {
            Some(&at) if at != NONE => Some(usize::from(at)),
            _ => None,
        }
    }
}
