//! The recorder's index of the files of a simulated detector, which is no data of the detector.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_measure::sum::Sums;
use keepup_recorder::counters::{Counters, StreamCounters};
use keepup_stream::file_index::INDEX_SUFFIX;
use keepup_stream::ledger::Count;

/// Streams with which the recorder describes the files.
#[derive(Clone, Debug)]
pub(super) struct FileIndexes(Arc<Counters>);

impl FileIndexes {
    pub(super) fn of(counters: &Arc<Counters>) -> Self {
        Self(Arc::clone(counters))
    }

    fn all(&self) -> Vec<Arc<StreamCounters>> {
        let mut streams = Vec::new();
        self.0.streams.catch_up(&mut streams);
        streams
    }

    fn streams(&self) -> Vec<Arc<StreamCounters>> {
        let mut streams = self.all();
        streams.retain(|stream| stream.info.name.ends_with(INDEX_SUFFIX));
        streams
    }

    /// Durable files and lines of the index. The counts of streams follow those of volumes after a moment.
    pub(super) fn durable_with_files(&self) -> u64 {
        self.all().iter().map(|stream| stream.durable_events.load(Relaxed)).saturating_sum()
    }

    /// Their durable events.
    pub(super) fn durable(&self) -> Count {
        self.streams().iter().fold(Count::default(), |sum, stream| {
            let (events, bytes) = (stream.durable_events.load(Relaxed), stream.durable_bytes.load(Relaxed));
            sum + Count { events, bytes }
        })
    }

    /// What they contain after the end of the recording.
    pub(super) fn totals(&self) -> IndexTotals {
        let ids = self.streams().iter().map(|stream| stream.info.id).collect();
        IndexTotals { ids, durable: self.durable() }
    }
}

/// What the recorder added to the events of the source.
#[derive(Clone, Debug, Default)]
pub(super) struct IndexTotals {
    /// Ids of the streams.
    pub(super) ids: BTreeSet<u32>,
    /// Durable events.
    pub(super) durable: Count,
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
