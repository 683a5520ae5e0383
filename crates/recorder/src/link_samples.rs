//! Metadata of blocks for tests.
use keepup_stream::wire::{ElementType, StreamInfo};

use super::*;

/// Block number `number` of stream `stream` at `intake`, with one event of one byte.
pub(crate) fn meta(intake: usize, stream: u32, number: u64) -> SealedMeta {
    let name = "s".to_owned();
    let info = StreamInfo { id: stream, name, element: ElementType::U8, shape: vec![], compression: None };
    let header = BlockHeader {
        stream,
        stream_block: number,
        first_sequence: number,
        event_count: 1,
        ..BlockHeader::default()
    };
    SealedMeta {
        header,
        bytes: 2 * SECTOR,
        channel: Arc::new(ChannelBytes::new(&info).unwrap()),
        intake,
        slot: 0,
        events: Arc::new(vec![EventMark { timestamp_ns: 0, payload_bytes: 1 }]),
        accounts_for: Count::one(1),
    }
}
