//! One unit of work per stage of the data path, for timing and for counting instructions.
use keepup_recording::crc::{Combiner, Crc32};
use keepup_recording::layout::{
    BlockHeader, ChannelBytes, MESSAGE_HEADER, SECTOR, block_bytes, put_block_sector, put_block_tail,
    put_message_header,
};
use keepup_stream::wire::{
    ControlMessage, ElementType, FrameKind, HEADER_BYTES, Header, Hello, Limits, Session, StreamInfo,
};

/// A session that declared `streams` streams, and one event header for each.
pub(crate) struct Decode {
    session: Session,
    headers: Vec<[u8; HEADER_BYTES]>,
    next: usize,
}

fn info(id: u32) -> StreamInfo {
    StreamInfo {
        id,
        name: format!("stream {id}"),
        element: ElementType::U8,
        shape: Vec::new(),
        compression: None,
    }
}

impl Decode {
    pub(crate) fn new(streams: u32) -> Self {
        let limits =
            Limits { max_event_bytes: 1 << 20, max_control_bytes: 1 << 20, max_streams: streams as usize };
        let mut session = Session::new(limits);
        let hello = Hello::new("bench", (0..streams).map(info).collect()).to_frame().unwrap();
        let (head, payload) = hello.split_first_chunk().unwrap();
        session.header(head).unwrap();
        session.control(payload).unwrap();
        let header = |stream| {
            let fields = Header::control(FrameKind::Event, &[]);
            Header { stream, sequence: 7, length: 1024, ..fields }.encode()
        };
        Self { session, headers: (0..streams).map(header).collect(), next: 0 }
    }

    /// Decodes one event header and looks up its stream.
    pub(crate) fn run(&mut self) {
        let header = &self.headers[self.next];
        self.next = (self.next + 1) % self.headers.len();
        std::hint::black_box(self.session.header(header).unwrap());
    }
}

/// A block with memory for its events; their payloads are received and checksummed.
pub(crate) struct Seal {
    block: Vec<u8>,
    channel: ChannelBytes,
    events: usize,
    event_bytes: usize,
    payloads: Combiner,
}

impl Seal {
    pub(crate) fn new(events: usize, event_bytes: usize) -> Self {
        let capacity = SECTOR + events * (MESSAGE_HEADER + event_bytes) + 2 * SECTOR;
        Self {
            block: vec![0; capacity],
            channel: ChannelBytes::new(&info(1)).unwrap(),
            events,
            event_bytes,
            payloads: Combiner::new(),
        }
    }

    /// Everything between the last payload byte and the write: message headers, the block
    /// checksum combined from the events' checksums, padding, first sector.
    pub(crate) fn run(&mut self) {
        let mut at = SECTOR - MESSAGE_HEADER;
        let mut crc = 0;
        for sequence in 0..self.events as u64 {
            let header = &mut self.block[at..at + MESSAGE_HEADER];
            put_message_header(header, 1, sequence, sequence, self.event_bytes as u64);
            let event_crc = std::hint::black_box(0x1234_5678);
            let mut headers = Crc32::resume(crc);
            headers.update(header);
            crc = self.payloads.combine(headers.value(), event_crc, self.event_bytes as u64);
            at += MESSAGE_HEADER + self.event_bytes;
        }
        let records = (self.events * (MESSAGE_HEADER + self.event_bytes)) as u64;
        let bytes = block_bytes(records) as usize;
        put_block_tail(&mut self.block[at..bytes]);
        let header = BlockHeader {
            stream: 1,
            event_count: self.events as u32,
            chunk_records_bytes: records,
            payload_bytes: (self.events * self.event_bytes) as u64,
            chunk_crc: crc,
            ..BlockHeader::default()
        };
        std::hint::black_box(put_block_sector(&mut self.block[..SECTOR], &header, &self.channel));
    }
}

/// Checksum of `bytes` in pieces, as a socket delivers them.
pub(crate) fn checksum(bytes: &[u8], piece_bytes: usize) -> u32 {
    let mut crc = Crc32::new();
    bytes.chunks(piece_bytes).for_each(|piece| crc.update(piece));
    crc.value()
}
