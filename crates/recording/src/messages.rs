//! Checks the message records of a block in sequence: stream, sequence numbers, lengths, times.

use crate::layout::{BlockHeader, MESSAGE_HEADER, MessageHeader, parse_message_header};

/// Walks the message headers of one block.
#[derive(Debug)]
pub(crate) struct MessageWalk {
    stream: u32,
    /// Sequence number of the next event.
    pub(crate) sequence: u64,
    events_left: u32,
    bytes_left: u64,
    earliest_ns: u64,
    latest_ns: u64,
}

impl MessageWalk {
    pub(crate) fn new(header: &BlockHeader) -> MessageWalk {
        MessageWalk {
            stream: header.stream,
            sequence: header.first_sequence,
            events_left: header.event_count,
            bytes_left: header.chunk_records_bytes,
            earliest_ns: u64::MAX,
            latest_ns: 0,
        }
    }

    /// Takes the message header at the start of `bytes`; its payload must fit the chunk.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<MessageHeader, &'static str> {
        let message = parse_message_header(bytes).ok_or("a message header is damaged")?;
        let after = self.bytes_left.checked_sub(MESSAGE_HEADER as u64);
        let after = after.and_then(|left| left.checked_sub(message.payload_bytes));
        if u32::from(message.stream) != self.stream {
            return Err("a message is of another stream");
        } else if self.events_left == 0 {
            return Err("there are more messages than the block's header says");
        } else if message.sequence != self.sequence as u32 {
            return Err("a message's sequence number does not follow the one before");
        }
        self.bytes_left = after.ok_or("a message is longer than its block")?;
        self.events_left -= 1;
        self.sequence += 1;
        self.earliest_ns = self.earliest_ns.min(message.timestamp_ns);
        self.latest_ns = self.latest_ns.max(message.timestamp_ns);
        Ok(message)
    }

    /// Final check after the last message: the block header's counts are complete.
    pub(crate) fn finish(&self, header: &BlockHeader) -> Result<(), &'static str> {
        if self.events_left != 0 || self.bytes_left != 0 {
            Err("there are fewer messages than the block's header says")
        } else if (self.earliest_ns, self.latest_ns) != (header.first_timestamp_ns, header.last_timestamp_ns)
        {
            Err("the messages' times are not those of the block's header")
        } else {
            Ok(())
        }
    }
}
