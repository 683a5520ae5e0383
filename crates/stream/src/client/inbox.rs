//! Cuts the bytes that a recorder sends into frames. Pure.
//!
//! Invariant: holds at most one unfinished frame, and a frame's length is compared with the limit before more
//! bytes are kept.

use crate::wire::{
    Ack, Bye, ControlMessage, ErrorReply, HEADER_BYTES, Header, Kind, MAX_CONTROL_BYTES, Welcome, WireError,
    crc32,
};

/// A whole frame of a recorder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Welcome(Welcome),
    Ack(Ack),
    Bye(Bye),
    Error(ErrorReply),
}

/// Bytes received and not yet cut.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Everything before this was handed out.
    start: usize,
}

impl Inbox {
    /// Takes what was received.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, `None` until more bytes come.
    ///
    /// # Errors
    /// The bytes are no frame that a recorder may send.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let rest = &self.bytes[self.start..];
        let Some(head) = rest.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let header = Header::decode(head)?;
        let bytes_max = match header.kind {
            Kind::Ack => 0,
            _ => MAX_CONTROL_BYTES,
        };
        let (kind, bytes) = (header.kind, header.length);
        if bytes > bytes_max {
            return Err(WireError::TooLong { kind, bytes, bytes_max });
        }
        let end = HEADER_BYTES + bytes as usize;
        let Some(payload) = rest.get(HEADER_BYTES..end) else {
            return Ok(None);
        };
        let computed = crc32(payload);
        if computed != header.crc {
            let what = format!("checksum is {computed:08x}, the header says {:08x}", header.crc);
            return Err(WireError::ControlPayload { kind, what });
        }
        let frame = match kind {
            Kind::Ack => Frame::Ack(Ack::from_header(&header)),
            Kind::Welcome => Frame::Welcome(Welcome::from_payload(payload)?),
            Kind::Bye => Frame::Bye(Bye::from_payload(payload)?),
            Kind::Error => Frame::Error(ErrorReply::from_payload(payload)?),
            Kind::Hello | Kind::Event | Kind::End => {
                return Err(WireError::Unexpected { kind, why: "only a client sends this kind" });
            }
        };
        self.start += end;
        Ok(Some(frame))
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
