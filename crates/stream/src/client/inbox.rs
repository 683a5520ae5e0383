//! Splits the bytes from a recorder into frames. Pure.
//!
//! Invariant: holds at most one unfinished frame; a frame's length is checked against the limit
//! before more bytes are kept.

use crate::wire::{
    Ack, Bye, ControlMessage, ErrorReply, FrameKind, HEADER_BYTES, Header, Located, MAX_CONTROL_BYTES,
    Welcome, WireError, crc32,
};

/// Complete frame from a recorder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Welcome(Welcome),
    Ack(Ack),
    Bye(Bye),
    Error(ErrorReply),
    Located(Located),
}

/// Received bytes that are not split yet.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// End of the frames already returned.
    start: usize,
}

impl Inbox {
    /// Appends received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Next complete frame; `None` until more bytes come.
    ///
    /// # Errors
    /// The bytes are not a frame that a recorder may send.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let rest = &self.bytes[self.start..];
        let Some(head) = rest.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let header = Header::decode(head)?;
        let bytes_max = match header.kind {
            FrameKind::Ack => 0,
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
            FrameKind::Ack => Frame::Ack(Ack::from_header(&header)),
            FrameKind::Welcome => Frame::Welcome(Welcome::from_payload(payload)?),
            FrameKind::Bye => Frame::Bye(Bye::from_payload(payload)?),
            FrameKind::Error => Frame::Error(ErrorReply::from_payload(payload)?),
            FrameKind::Located => Frame::Located(Located::from_payload(payload)?),
            FrameKind::Hello | FrameKind::Event | FrameKind::Missing | FrameKind::End | FrameKind::Locate => {
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
