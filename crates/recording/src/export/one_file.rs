//! All segments of all volumes as one file, which is both MCAP and HDF5 like a segment.
//!
//! Blocks are copied unchanged, except those with events that an earlier recording has too: the others of
//! their events become blocks of their own. They start at multiples of 4096, so a file system that can share
//! extents (XFS, btrfs) copies no data. Every event is read and checked first, past the page cache.
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use keepup_measure::clock::{Clock, SystemClock};
use keepup_measure::sum::Sums;
use keepup_stream::ledger::Gap;
use keepup_sys::PAGE_BYTES;
use keepup_sys::read_ahead::ReadAhead;
use keepup_sys::regular::{open_direct, open_direct_to_write};
use rustix::fs::{copy_file_range, fstatfs};
use rustix::io::Errno;

use super::block_part::block_of;
use super::{Exported, create, gaps_of, missing, require_sealed, require_vacant, wants};
use crate::error::RecordingError;
use crate::files::open_regular;
use crate::layout::{ChannelBytes, SECTOR, SUPERBLOCK_SPACE, SegmentIdentity, block_bytes, segment_preamble};
use crate::merged::MergedRecording;
use crate::progress::Progress;
use crate::ranges::Seen;
use crate::reader::Recording;
use crate::scan::{ScanOptions, scan};
use crate::seal::{BlockPart, Metadata, SegmentIndex, put_tail_with};
use crate::volume::{Segment, Volume};

/// Most events of one file: the index takes 16 bytes of memory per event.
const EVENTS_MAX: usize = 1 << 26;

/// Name of the metadata record with the missing events of each stream.
const MISSING: &str = "missing";

/// Most bytes of one copy inside the kernel; progress is reported after each.
const COPY_BYTES: usize = 256 << 20;

/// Bytes of the file, in order.
enum Piece {
    /// Consecutive blocks of a segment that stay consecutive.
    Blocks { segment: usize, from: u64, bytes: u64 },
    /// A part of a block.
    Part { segment: usize, part: BlockPart },
}

impl Piece {
    fn bytes(&self) -> u64 {
        match self {
            Self::Blocks { bytes, .. } => *bytes,
            Self::Part { part, .. } => block_bytes(part.records_bytes),
        }
    }

    fn segment(&self) -> usize {
        match self {
            Self::Blocks { segment, .. } | Self::Part { segment, .. } => *segment,
        }
    }
}

/// A checked segment, closed: there may be more segments than a process may open files.
struct Source<'a> {
    path: &'a Path,
    identity: FileIdentity,
}

/// Device, inode and length of a file.
type FileIdentity = (u64, u64, u64);

fn identity_of(file: &File) -> io::Result<FileIdentity> {
    file.metadata().map(|meta| (meta.dev(), meta.ino(), meta.len()))
}

impl Source<'_> {
    /// Opens it again; another file of this name is an error.
    fn open(&self) -> io::Result<File> {
        let file = open_regular(self.path)?;
        if identity_of(&file)? != self.identity {
            return Err(io::Error::other("a segment was replaced after it was checked"));
        }
        Ok(file)
    }
}

/// What is taken of one segment.
#[derive(Default)]
struct Taken {
    /// Offsets of blocks that are taken whole.
    whole: BTreeSet<u64>,
    /// Offset of a block, and the events that are taken of it.
    parts: Vec<(u64, Range<u64>)>,
}

/// Writes `recording`, or one stream of it, to the file `path`, which must not exist. Each segment is read
/// once to check it, and once to copy it. Of several recordings, each event is written once.
///
/// # Errors
/// A segment is unsealed or cannot be read, there are more than 2^26 events, or `path` cannot be
/// written.
pub fn one_file<'a>(
    recording: impl Into<MergedRecording<'a>>,
    stream: Option<u32>,
    path: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Exported, RecordingError> {
    let recording = &recording.into();
    require_sealed(recording)?;
    require_vacant(path)?;
    let (mut index, mut pieces, mut sources) = (SegmentIndex::default(), Vec::new(), Vec::new());
    let mut left_out = 0;
    let segments = ordered(recording);
    let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
    let mut at = SECTOR as u64;
    // A journal may claim any length.
    let lengths = segments.iter().map(|(_, segment)| segment.readable_bytes());
    let checked_bytes = lengths.fold(0, u64::saturating_add);
    let mut state = Progress { total_bytes: checked_bytes.saturating_mul(2), ..Progress::default() };
    for (volume, segment) in segments {
        let file =
            open_regular(&segment.path).map_err(RecordingError::open("open the segment", &segment.path))?;
        let expected = volume.identity(segment.index, segment.id);
        let options = ScanOptions { durable_bytes: segment.readable_bytes(), reads_events: true };
        let found = scan(&file, &segment.path, &expected, options, &mut |bytes| {
            state.done_bytes = state.done_bytes.saturating_add(bytes);
            progress(state);
        })?;
        take(
            &mut index,
            &found.index,
            unseen(&found.index, stream, &mut seen),
            sources.len(),
            (&mut pieces, &mut at),
        );
        if index.events() > EVENTS_MAX {
            return Err(RecordingError::TooLarge { path: path.into(), events_max: EVENTS_MAX });
        }
        let identity = identity_of(&file).map_err(RecordingError::io("inspect", &segment.path))?;
        sources.push(Source { path: &segment.path, identity });
    }
    for (&id, stream) in recording.streams().iter().filter(|(id, _)| wants(stream, **id)) {
        match ChannelBytes::new(stream) {
            Ok(channel) => index.declare(id, channel),
            Err(_) => left_out += 1,
        }
    }
    let missing = missing(recording, stream)?;
    let metadata = Metadata::new(MISSING, &missing_by_stream(&missing, index.stream_ids()));
    let metadata = metadata.map_err(RecordingError::io("write", path))?;
    let out = create(path)?;
    let identity = SegmentIdentity { recording: recording.about().id, ..SegmentIdentity::default() };
    // One stream is a part of the segments.
    let copied_bytes = pieces.iter().map(Piece::bytes).saturating_sum::<u64>();
    state.total_bytes = checked_bytes.saturating_add(copied_bytes);
    let mut copied = |bytes| {
        state.done_bytes = state.done_bytes.saturating_add(bytes);
        progress(state);
    };
    let written = write(
        (&out, path),
        &segment_preamble(&identity),
        (&index, &metadata),
        (&pieces, &sources, at),
        &mut copied,
    );
    written.map_err(RecordingError::io("write", path))?;
    Ok(Exported {
        streams: index.stream_ids().len() as u64,
        events: index.events() as u64,
        payload_bytes: index.payload_bytes(),
        left_out,
        missing,
    })
}

/// Gaps by stream id, as texts. A stream that lacks nothing has an empty list.
fn missing_by_stream(gaps: &[Gap], streams: impl Iterator<Item = u32>) -> BTreeMap<String, String> {
    streams.map(|id| (id.to_string(), gaps_of(gaps, id).to_string())).collect()
}

/// Segments in the order of the recordings: the first recording that has an event has precedence.
fn ordered<'a>(recording: &MergedRecording<'a>) -> Vec<(&'a Volume, &'a Segment)> {
    let of_recording = |part: &'a Recording| {
        let segments = |volume: &'a Volume| volume.segments().iter().map(move |segment| (volume, segment));
        let mut own: Vec<_> = part.volumes().iter().flat_map(segments).collect();
        // Segments of the same time are on all volumes.
        own.sort_by_key(|(volume, segment)| (segment.index, volume.manifest().volume_index));
        own
    };
    recording.recordings().flat_map(of_recording).collect()
}

/// Events of the selected streams in a segment that were in no earlier one. The same block may be on two
/// volumes, and the same event in two recordings.
fn unseen(found: &SegmentIndex, stream: Option<u32>, seen: &mut BTreeMap<u32, Seen>) -> Taken {
    let mut taken = Taken::default();
    for (id, offset, events) in found.spans().filter(|(id, ..)| wants(stream, *id)) {
        let fresh = seen.entry(id).or_default().add(events.clone());
        match fresh.as_slice() {
            [whole] if *whole == events => _ = taken.whole.insert(offset),
            _ => taken.parts.extend(fresh.into_iter().map(|part| (offset, part))),
        }
    }
    taken
}

/// Adds what is taken of a segment to the index and the pieces of the file, which ends at `at`.
fn take(
    index: &mut SegmentIndex,
    found: &SegmentIndex,
    taken: Taken,
    segment: usize,
    (pieces, at): (&mut Vec<Piece>, &mut u64),
) {
    for (from, bytes) in index.take_from(found, |_, offset| taken.whole.contains(&offset), at) {
        match pieces.last_mut() {
            Some(Piece::Blocks { segment: last, from: before, bytes: length })
                if *last == segment && *before + *length == from =>
            {
                *length += bytes;
            }
            _ => pieces.push(Piece::Blocks { segment, from, bytes }),
        }
    }
    for (offset, events) in taken.parts {
        let part = index.take_part(found, offset, events, at);
        pieces.extend(part.map(|part| Piece::Part { segment, part }));
    }
}

fn write(
    (out, path): (&File, &Path),
    preamble: &[u8; SECTOR],
    (index, metadata): (&SegmentIndex, &Metadata),
    (pieces, sources, data_bytes): (&[Piece], &[Source<'_>], u64),
    copied: &mut dyn FnMut(u64),
) -> io::Result<()> {
    out.write_all_at(preamble, 0)?;
    let mut at = SECTOR as u64;
    let mut direct = DirectCopy::default();
    // The pieces are in the order of the segments.
    let mut open: Option<(usize, File)> = None;
    for piece in pieces {
        let number = piece.segment();
        let Some(source) = sources.get(number) else { continue };
        let file = match &mut open {
            Some((opened, file)) if *opened == number => file,
            other => &mut other.insert((number, source.open()?)).1,
        };
        match piece {
            &Piece::Blocks { from, bytes, .. } => {
                let copied_bytes = match copies_inside_kernel(out) {
                    true => copy_in_kernel(file, from, out, at, bytes, copied)?,
                    false => 0,
                };
                if copied_bytes < bytes {
                    let rest = (from + copied_bytes)..(from + bytes);
                    direct.copy((source.path, rest), (path, at + copied_bytes), copied)?;
                }
            }
            Piece::Part { part, .. } => {
                out.write_all_at(&block_of(file, part)?, at)?;
                copied(piece.bytes());
            }
        }
        at += piece.bytes();
    }
    let mut tail_out = BufWriter::with_capacity(1 << 20, out);
    tail_out.seek(SeekFrom::Start(data_bytes))?;
    let tail = put_tail_with(index, Some(metadata), data_bytes, &mut tail_out)?;
    tail_out.flush()?;
    out.write_all_at(&tail.superblock, SUPERBLOCK_SPACE.start as u64)?;
    out.sync_all()
}

/// Whether the kernel may copy without moving the bytes: on file systems that share extents, and on servers.
/// ext4 and tmpfs copy through the page cache.
fn copies_inside_kernel(out: &File) -> bool {
    const EXT: u64 = 0xEF53;
    const TMPFS: u64 = 0x0102_1994;
    fstatfs(out).is_ok_and(|system| !matches!(system.f_type as u64, EXT | TMPFS))
}

/// Copies bytes inside the kernel; returns how many, fewer if it cannot copy between these files.
fn copy_in_kernel(
    from: &File,
    mut from_at: u64,
    to: &File,
    mut to_at: u64,
    bytes: u64,
    copied: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        let want = usize::try_from(bytes - done).unwrap_or(usize::MAX).min(COPY_BYTES);
        match copy_file_range(from, Some(&mut from_at), to, Some(&mut to_at), want) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                done += length as u64;
                copied(length as u64);
            }
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Copies files past the page cache, where both file systems can.
#[derive(Default)]
struct DirectCopy {
    reader: Option<ReadAhead>,
    to: Option<File>,
}

impl DirectCopy {
    /// Copies `range` of the file `from` to the offset `at` of `to`; `copied` is called with the length of
    /// each part.
    fn copy(
        &mut self,
        (from, range): (&Path, Range<u64>),
        (to, mut at): (&Path, u64),
        copied: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(ReadAhead::new(|| SystemClock.now_ns()).map_err(io::Error::other)?),
        };
        let to = match &self.to {
            Some(to) => to,
            None => self.to.insert(open_direct_to_write(to)?.0),
        };
        let end = at + (range.end - range.start);
        reader.begin(open_direct(from)?, range.start, range.end).map_err(io::Error::other)?;
        while at < end {
            // Pieces are whole pages, as the blocks are, unless the file has become shorter.
            if !reader.advance()? || !reader.bytes().len().is_multiple_of(PAGE_BYTES) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let length = reader.bytes().len();
            to.write_all_at(reader.bytes(), at)?;
            reader.consume(length);
            at += length as u64;
            copied(length as u64);
        }
        Ok(())
    }
}
