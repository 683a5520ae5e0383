//! Contents of a sealed segment, from its index or, if that is damaged, from its blocks.
use crate::error::RecordingError;
use crate::files::open_regular;
use crate::scan::{ScanOptions, scan};
use crate::seal::{IndexedBlock, SegmentLookup, StreamSummary, summaries};
use crate::volume::{Segment, Volume};

/// Contents of a segment.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Its streams by id, each with its blocks by sequence number.
    pub(crate) streams: Vec<(StreamSummary, Vec<IndexedBlock>)>,
    /// Damage of its index.
    pub(crate) damage: Option<RecordingError>,
}

/// Reads the contents of a sealed segment.
///
/// # Errors
/// The segment cannot be read, or both its index and its blocks are damaged.
pub(crate) fn contents(volume: &Volume, segment: &Segment) -> Result<Contents, RecordingError> {
    match indexed(segment) {
        Ok(streams) => Ok(Contents { streams, damage: None }),
        Err(damage @ RecordingError::Segment { .. }) => {
            let path = &segment.path;
            let file = open_regular(path).map_err(RecordingError::open("open the segment", path))?;
            let identity = volume.identity(segment.index, segment.id);
            let options = ScanOptions { durable_bytes: segment.readable_bytes(), reads_events: false };
            let found = scan(&file, path, &identity, options, &mut |_| {})?;
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
