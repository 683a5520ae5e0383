//! Checks a sealed segment whose bytes pass in order, in pieces of any size, for a copy that reads them once.
//!
//! Checked are the preamble, every block's header, place and checksum, the padding, and the number of blocks.
//! The tail is derived from the blocks and is not checked. Invariant: memory is one sector.
use keepup_recording::crc::Crc32;
use keepup_recording::layout::{
    BlockHeader, CHUNK_START, RECORD_HEADER, SECTOR, SegmentIdentity, block_bytes, pad_opening,
    parse_block_sector, parse_preamble,
};
use keepup_recording::volume::{Segment, SegmentState, Volume};

/// Check of one segment in progress.
#[derive(Clone, Debug)]
pub(crate) struct SegmentCheck {
    expected: SegmentIdentity,
    /// End of the blocks, bytes.
    data_bytes: u64,
    /// Number of blocks according to the journal.
    blocks: u64,
    /// Offset of the next byte.
    offset: u64,
    part: Part,
    next_block: u64,
    previous_header_crc: u32,
    fault: Option<SegmentFault>,
}

/// First defect of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentFault {
    /// Where, bytes from the start of the file.
    pub(crate) offset: u64,
    /// What is wrong.
    pub(crate) what: String,
}

/// Part of the segment that the next byte belongs to.
#[derive(Clone, Debug)]
enum Part {
    /// Preamble or first sector of a block, as far as it has arrived.
    Sector(Vec<u8>),
    /// Message records of a block.
    Records { header: BlockHeader, left: u64, crc: Crc32 },
    /// Padding of a block: bytes passed, and bytes in all.
    Pad { at: u64, bytes: u64 },
    /// Everything behind the blocks.
    Tail,
}

impl SegmentCheck {
    /// Check of `segment` of `volume`; `None` if it is not sealed.
    pub(crate) fn new(volume: &Volume, segment: &Segment) -> Option<Self> {
        let SegmentState::Ended { data_bytes, blocks, .. } = segment.state else { return None };
        Some(Self {
            expected: volume.identity(segment.index, segment.id),
            data_bytes,
            blocks,
            offset: 0,
            part: Part::Sector(Vec::new()),
            next_block: 0,
            previous_header_crc: 0,
            fault: None,
        })
    }

    /// Takes the next bytes of the file.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.fault.is_none() {
            let taken = self.take(bytes).min(bytes.len());
            self.offset += taken as u64;
            bytes = &bytes[taken..];
        }
    }

    /// Ends the check, after the last byte.
    ///
    /// # Errors
    /// The first defect.
    pub(crate) fn finish(self) -> Result<(), SegmentFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let fault = |what: String| Err(SegmentFault { offset: self.offset, what });
        let is_at_end = self.offset >= self.data_bytes && matches!(self.part, Part::Tail);
        if !is_at_end {
            fault("the file ends before its last block".to_owned())
        } else if self.next_block != self.blocks {
            fault(format!("it has {} blocks, and the journal lists {}", self.next_block, self.blocks))
        } else {
            Ok(())
        }
    }

    /// Takes some of the bytes; returns how many.
    fn take(&mut self, bytes: &[u8]) -> usize {
        match &mut self.part {
            Part::Sector(sector) => {
                let taken = bytes.len().min(SECTOR - sector.len());
                sector.extend_from_slice(&bytes[..taken]);
                if sector.len() == SECTOR {
                    let sector = std::mem::take(sector);
                    let at = self.offset + taken as u64 - SECTOR as u64;
                    self.take_sector(&sector, at);
                }
                taken
            }
            Part::Records { header, left, crc } => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                crc.update(&bytes[..taken]);
                *left -= taken as u64;
                if *left == 0 {
                    let (header, crc) = (*header, crc.value());
                    self.end_records(&header, crc, taken as u64);
                }
                taken
            }
            Part::Pad { at, bytes: all } => {
                let taken = bytes.len().min(usize::try_from(*all - *at).unwrap_or(usize::MAX));
                let opening = pad_opening(*all);
                let expected = |index: u64| opening.get(index as usize).copied().unwrap_or(0);
                let wrong = (*at..).zip(&bytes[..taken]).find(|(index, byte)| **byte != expected(*index));
                let begin = *at;
                *at += taken as u64;
                let is_over = *at == *all;
                if let Some((index, _)) = wrong {
                    self.fail(self.offset + (index - begin), "the padding of the block is not empty");
                } else if is_over {
                    self.begin_part(self.offset + taken as u64);
                }
                taken
            }
            Part::Tail => bytes.len(),
        }
    }

    /// Checks the preamble or the first sector of a block, at offset `at`.
    fn take_sector(&mut self, sector: &[u8], at: u64) {
        if at == 0 {
            match parse_preamble(sector) {
                Err(error) => self.fail(at, error.to_string()),
                Ok(found) => {
                    let expected =
                        SegmentIdentity { created_unix_ns: found.created_unix_ns, ..self.expected };
                    if found != expected {
                        self.fail(at, "it is another segment than the journal says");
                    }
                }
            }
            return self.begin_part(SECTOR as u64);
        }
        let parsed = match parse_block_sector(sector) {
            Err(error) => return self.fail(at, error.to_string()),
            Ok(parsed) => parsed,
        };
        let header = parsed.header;
        let ids = (header.recording, header.segment, header.segment_index);
        let end = block_bytes(header.chunk_records_bytes).checked_add(at);
        if ids != (self.expected.recording, self.expected.segment, self.expected.segment_index) {
            self.fail(at, "the block is of another segment");
        } else if (header.segment_block, header.previous_header_crc)
            != (self.next_block, self.previous_header_crc)
        {
            self.fail(at, "the block does not follow the one before");
        } else if end.is_none_or(|end| end > self.data_bytes) {
            self.fail(at, "the block reaches beyond the end of the blocks");
        } else {
            self.next_block += 1;
            self.previous_header_crc = parsed.header_crc;
            // The last bytes of the sector are the first message header, at least.
            let mut crc = Crc32::new();
            crc.update(&sector[CHUNK_START..]);
            let left = header.chunk_records_bytes - (SECTOR - CHUNK_START) as u64;
            match left {
                0 => self.end_records_at(&header, crc.value(), at + SECTOR as u64),
                _ => self.part = Part::Records { header, left, crc },
            }
        }
    }

    fn end_records(&mut self, header: &BlockHeader, crc: u32, taken: u64) {
        self.end_records_at(header, crc, self.offset + taken);
    }

    /// Ends the records of a block, which end at offset `end`.
    fn end_records_at(&mut self, header: &BlockHeader, crc: u32, end: u64) {
        if crc != header.chunk_crc {
            let (first, events) = (header.first_sequence, u64::from(header.event_count));
            let what = format!(
                "the checksum of the block with events {first} to {} of stream {} does not match",
                first.saturating_add(events.saturating_sub(1)),
                header.stream
            );
            return self.fail(end - header.chunk_records_bytes, what);
        }
        let bytes = block_bytes(header.chunk_records_bytes) - CHUNK_START as u64 - header.chunk_records_bytes;
        if bytes < RECORD_HEADER as u64 {
            self.begin_part(end)
        } else {
            self.part = Part::Pad { at: 0, bytes }
        }
    }

    /// The next part begins at offset `at`.
    fn begin_part(&mut self, at: u64) {
        self.part = if at >= self.data_bytes { Part::Tail } else { Part::Sector(Vec::with_capacity(SECTOR)) };
    }

    fn fail(&mut self, offset: u64, what: impl Into<String>) {
        self.fault.get_or_insert(SegmentFault { offset, what: what.into() });
    }
}

#[cfg(test)]
#[path = "segment_check_tests.rs"]
mod tests;
