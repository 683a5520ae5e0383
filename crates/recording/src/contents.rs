//! What a sealed segment has: by its index, or, when that is damaged, by its blocks.
use crate::error::RecordingError;
use crate::files::open_regular;
use crate::recover::scan::scan;
use crate::seal::{IndexedBlock, SegmentLookup, StreamSummary, summaries};
use crate::volume::{Segment, Volume};

/// What a segment has.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Its streams, by id, with their blocks by sequence number.
    pub(crate) streams: Vec<(StreamSummary, Vec<IndexedBlock>)>,
    /// What is wrong with its index.
    pub(crate) damage: Option<RecordingError>,
}

/// Reads what a sealed segment has.
///
/// # Errors
/// When it cannot be read, or its blocks are damaged and its index too.
pub(crate) fn contents(volume: &Volume, segment: &Segment) -> Result<Contents, RecordingError> {
    match indexed(segment) {
        Ok(streams) => Ok(Contents { streams, damage: None }),
        Err(damage @ RecordingError::Segment { .. }) => {
            let path = &segment.path;
            let file = open_regular(path).map_err(RecordingError::open("open the segment", path))?;
            let identity = volume.identity(segment.index, segment.id);
            let found = scan(&file, path, &identity, segment.readable_bytes())?;
            Ok(Contents { streams: summaries(&found.index), damage: Some(damage) })
        }
        Err(error) => Err(error),
    }
}

fn indexed(segment: &Segment) -> Result<Vec<(StreamSummary, Vec<IndexedBlock>)>, RecordingError> {
    let lookup = SegmentLookup::open(segment)?;
    let blocks = |summary: &StreamSummary| Ok((*summary, lookup.blocks_of(summary, segment)?));
    lookup.streams.iter().map(blocks).collect()
}
