//! Decoder of what the thread that reads a directory sends.
//!
//! The bytes of a file do not pass through the decoder: the caller receives them into the event's block.
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use keepup_stream::file_index::{FILES, FileEntry, INDEX_SUFFIX};
use keepup_stream::ledger::LossCause;
use keepup_stream::rejected::{RejectUnit, Rejection};
use keepup_stream::wire::{ElementType, StreamInfo};

use super::notice::{LENGTH_BYTES, Notice};
use crate::{Decoder, DetectorError, Event, EventStart, Input, Item};

/// Streams of a directory: files, and their index.
const STREAM_FILES: usize = 0;
const STREAM_INDEX: usize = 1;

/// An item that is handed out later.
#[derive(Debug)]
enum Queued {
    Streams,
    Start(EventStart),
    End { is_whole: bool },
    Lost { sequence: u64 },
    Index { line: Vec<u8>, timestamp_ns: u64 },
    EndOfFiles,
}

/// Decoder of the files of a directory and of their index.
pub struct Files {
    infos: [StreamInfo; 2],
    metadata: BTreeMap<String, String>,
    /// A notice, with its length in front, and how much of it has arrived.
    notice: Vec<u8>,
    filled: usize,
    queue: VecDeque<Queued>,
    /// Index entry of the file that is arriving, and its time.
    arriving: Option<FileEntry>,
    index_sequence: u64,
    remarks: Vec<String>,
    rejected: Vec<Rejection>,
    failure: Option<DetectorError>,
    unix_ns: u64,
    outgoing: Vec<u8>,
}

impl Files {
    /// A decoder of the files of `directory`. A byte starts the thread.
    pub fn new(directory: &Path) -> Self {
        let info = |id: usize, name: String| StreamInfo {
            id: id as u32,
            name,
            element: ElementType::U8,
            shape: Vec::new(),
            compression: None,
        };
        let infos =
            [info(STREAM_FILES, FILES.to_owned()), info(STREAM_INDEX, format!("{FILES}{INDEX_SUFFIX}"))];
        Self {
            infos,
            metadata: BTreeMap::from([("directory".to_owned(), super::printable(directory))]),
            notice: vec![0; LENGTH_BYTES],
            filled: 0,
            queue: VecDeque::from([Queued::Streams]),
            arriving: None,
            index_sequence: 0,
            remarks: Vec::new(),
            rejected: Vec::new(),
            failure: None,
            unix_ns: 0,
            outgoing: vec![1],
        }
    }

    /// Takes the notice, whose bytes are complete, or its length.
    fn advance(&mut self) -> Result<(), DetectorError> {
        if self.filled == LENGTH_BYTES && self.notice.len() == LENGTH_BYTES {
            let length = Notice::length(*self.notice.first_chunk().unwrap_or(&[0; LENGTH_BYTES]))?;
            self.notice.resize(LENGTH_BYTES + length, 0);
            return Ok(());
        }
        let notice = Notice::parse(&self.notice[LENGTH_BYTES..])?;
        self.notice.truncate(LENGTH_BYTES);
        self.filled = 0;
        self.take_notice(notice)
    }

    fn take_notice(&mut self, notice: Notice) -> Result<(), DetectorError> {
        match (notice, self.arriving.is_some()) {
            (Notice::File { sequence, name, bytes, mtime_ns }, false) => {
                let entry = FileEntry::new(sequence, &name);
                self.arriving = Some(FileEntry { bytes: Some(bytes), mtime_ns: Some(mtime_ns), ..entry });
                let start = EventStart { stream: STREAM_FILES, sequence, timestamp_ns: mtime_ns, bytes };
                self.queue.push_back(Queued::Start(start));
            }
            (Notice::Whole, true) => self.queue.push_back(Queued::End { is_whole: true }),
            (Notice::Changed, true) => {
                self.arriving = None;
                self.queue.push_back(Queued::End { is_whole: false });
            }
            (Notice::Renamed { sequence, name, from }, false) => {
                let from = String::from_utf8_lossy(&from).into_owned();
                self.enter(&FileEntry { renamed_from: Some(from), ..FileEntry::new(sequence, &name) });
            }
            (Notice::Lost { sequence, name, why }, false) => {
                self.remarks
                    .push(format!("file {sequence} {:?} is lost: {why}", String::from_utf8_lossy(&name)));
                self.queue.push_back(Queued::Lost { sequence });
                self.enter(&FileEntry { lost: Some(why), ..FileEntry::new(sequence, &name) });
            }
            (Notice::Remark(remark), false) => self.remarks.push(remark),
            (Notice::Rejected { reason, count, detail }, false) => {
                let (sender, unit, is_foreign) = (None, RejectUnit::File, false);
                self.rejected.push(Rejection { sender, reason, unit, count, is_foreign, detail });
            }
            (Notice::Failed(why), false) => self.failure = Some(DetectorError::Directory(why)),
            (Notice::End, false) => self.queue.push_back(Queued::EndOfFiles),
            (notice, _) => return Err(DetectorError::Message(format!("unexpected {notice:?}"))),
        }
        Ok(())
    }

    /// Adds an entry to the index.
    fn enter(&mut self, entry: &FileEntry) {
        let timestamp_ns = entry.mtime_ns.unwrap_or(self.unix_ns);
        self.queue.push_back(Queued::Index { line: entry.to_line(), timestamp_ns });
    }
}

impl Decoder for Files {
    fn input(&mut self) -> Input<'_> {
        Input::Bytes(&mut self.notice[self.filled..])
    }

    fn received(&mut self, count: usize, unix_ns: u64) {
        self.unix_ns = unix_ns;
        self.filled += count;
        if self.filled == self.notice.len()
            && let Err(error) = self.advance()
        {
            self.failure = Some(error);
        }
    }

    fn item(&mut self) -> Result<Option<Item<'_>>, DetectorError> {
        let Some(item) = self.queue.front() else { return self.failure.clone().map_or(Ok(None), Err) };
        Ok(Some(match item {
            Queued::Streams => Item::Streams(&self.infos),
            Queued::Start(start) => Item::Start(*start),
            Queued::End { is_whole } => Item::Complete { is_whole: *is_whole },
            Queued::Lost { sequence } => {
                let (stream, cause) = (STREAM_FILES, LossCause::FileUnreadable);
                Item::Lost { stream, sequence: *sequence, cause }
            }
            Queued::Index { line, timestamp_ns } => Item::Event(Event {
                stream: STREAM_INDEX,
                sequence: self.index_sequence,
                timestamp_ns: *timestamp_ns,
                missing: None,
                payload: line,
            }),
            Queued::EndOfFiles => Item::End { events: 0, streams: 0 },
        }))
    }

    fn take(&mut self) {
        if let Some(Queued::Index { .. }) = self.queue.pop_front() {
            self.index_sequence += 1;
        }
    }

    fn completed(&mut self, crc: u32) {
        if let Some(entry) = self.arriving.take() {
            self.enter(&FileEntry { crc32: Some(format!("{crc:08x}")), ..entry });
        }
    }

    fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    fn remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    fn rejected(&mut self) -> Vec<Rejection> {
        std::mem::take(&mut self.rejected)
    }

    fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
