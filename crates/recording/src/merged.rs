//! Recordings read as one: those of several hosts of a run.
//!
//! A stream may be in several of them, and some of its events too. Readers use each event once, from the
//! first recording that has it. Invariant: all recordings declare a stream in the same way.
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use keepup_stream::ledger::Gap;
use keepup_stream::wire::StreamInfo;

use crate::contents::contents;
use crate::error::RecordingError;
use crate::id::Id;
use crate::journal::JOURNAL_FILE;
use crate::ranges::Seen;
use crate::reader::Recording;
use crate::volume::{Segment, Volume};

/// Several recordings, or a single one.
#[derive(Clone, Debug)]
pub struct MergedRecording<'a> {
    about: About,
    parts: Vec<(Option<String>, &'a Recording)>,
}

/// Description of a recording in exports.
#[derive(Clone, Debug)]
pub struct About {
    /// Name.
    pub name: String,
    /// Identity.
    pub id: Id,
    /// Creation time, ns since the Unix epoch.
    pub created_unix_ns: u64,
    /// Run number, where runs are numbered.
    pub run: Option<u64>,
    /// Metadata.
    pub metadata: BTreeMap<String, String>,
}

impl<'a> From<&'a Recording> for MergedRecording<'a> {
    fn from(recording: &'a Recording) -> Self {
        let sent = recording.manifest().sent();
        let about = About {
            name: sent.name,
            id: recording.manifest().recording,
            created_unix_ns: sent.created_unix_ns,
            run: sent.run,
            metadata: sent.metadata,
        };
        Self { about, parts: vec![(None, recording)] }
    }
}

impl<'a> From<&MergedRecording<'a>> for MergedRecording<'a> {
    fn from(recordings: &MergedRecording<'a>) -> Self {
        recordings.clone()
    }
}

impl<'a> MergedRecording<'a> {
    /// Joins recordings, each with a label that is unique among them.
    ///
    /// # Errors
    /// Two recordings declare a stream of the same id differently.
    pub fn new(about: About, parts: Vec<(String, &'a Recording)>) -> Result<Self, RecordingError> {
        let declarations = parts.iter().map(|(_, recording)| (journal(recording), recording.streams()));
        check_declarations(declarations)?;
        let parts = parts.into_iter().map(|(label, recording)| (Some(label), recording)).collect();
        Ok(Self { about, parts })
    }

    /// Name, run and metadata.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// All streams that a journal declares, by id.
    pub fn streams(&self) -> BTreeMap<u32, &'a StreamInfo> {
        self.parts.iter().rev().flat_map(|(_, recording)| recording.streams()).collect()
    }

    /// All gaps in the journals; some of the events may be in another recording.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.parts.iter().flat_map(|(_, recording)| recording.gaps())
    }

    /// Events that no recording has, with the causes that the journals state, by stream and position.
    ///
    /// # Errors
    /// A sealed segment cannot be read.
    pub(crate) fn missing(&self) -> Result<Vec<Gap>, RecordingError> {
        if let [(_, only)] = &self.parts[..] {
            return Ok(only.gaps());
        }
        let mut known: BTreeMap<u32, Seen> = BTreeMap::new();
        for (volume, segment) in self.segments().filter(|(_, segment)| segment.is_ended()) {
            for (summary, blocks) in contents(volume, segment)?.streams {
                let known = known.entry(summary.stream).or_default();
                blocks.iter().for_each(|block| drop(known.add(block.first_sequence..block.end())));
            }
        }
        let mut missing = Vec::new();
        for gap in self.gaps() {
            let numbers = gap.first_sequence..gap.first_sequence.saturating_add(gap.events);
            let fresh = known.entry(gap.stream).or_default().add(numbers);
            let part =
                |part: Range<u64>| Gap { first_sequence: part.start, events: part.end - part.start, ..gap };
            missing.extend(fresh.into_iter().map(part));
        }
        missing.sort_by_key(|gap| (gap.stream, gap.first_sequence));
        Ok(missing)
    }

    /// Volumes of all recordings, each with the label of its recording.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = (Option<&str>, &'a Volume)> {
        self.parts.iter().flat_map(|(label, recording)| {
            recording.volumes().iter().map(|volume| (label.as_deref(), volume))
        })
    }

    /// Segments of all recordings.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (&'a Volume, &'a Segment)> {
        self.volumes().flat_map(|(_, volume)| volume.segments().iter().map(move |segment| (volume, segment)))
    }

    /// The recordings.
    pub(crate) fn recordings(&self) -> impl Iterator<Item = &'a Recording> {
        self.parts.iter().map(|(_, recording)| *recording)
    }
}

/// Checks that recordings, each with the path of a journal and its streams, declare streams in the same way.
pub(crate) fn check_declarations<'a, S>(
    recordings: impl Iterator<Item = (PathBuf, S)>,
) -> Result<(), RecordingError>
where
    S: IntoIterator<Item = (u32, &'a StreamInfo)>,
{
    let mut known: BTreeMap<u32, (&StreamInfo, PathBuf)> = BTreeMap::new();
    for (path, streams) in recordings {
        for (id, stream) in streams {
            let (first, of) = known.entry(id).or_insert_with(|| (stream, path.clone()));
            if *first != stream {
                let what = format!("it declares stream {id} differently than {}", of.display());
                return Err(RecordingError::Manifest { path, what: what.into() });
            }
        }
    }
    Ok(())
}

fn journal(recording: &Recording) -> PathBuf {
    recording.volumes()[0].dir().join(JOURNAL_FILE)
}
