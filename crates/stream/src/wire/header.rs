//! 64-byte header of every frame in both directions, little endian.
//!
//! Invariant: `decode(encode(h)) == h` for every header with a stream id below 65536, and a
//! header with a flipped bit is refused (its last four bytes are the CRC-32 of the first sixty).

use super::{STREAM_ID_END, WireError, crc32};

/// Length of a frame header, bytes.
pub const HEADER_BYTES: usize = 64;
/// First four bytes of every header: "KUP1".
pub const MAGIC: u32 = 0x3150_554B;
/// Protocol version of this crate.
pub const VERSION: u8 = 1;

/// Kind of a frame; the value is the byte on the wire. Kinds from 0x80 on are sent by the
/// recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// First frame of a client: JSON `Hello`.
    Hello = 1,
    /// One event.
    Event = 2,
    /// Last frame of a client: JSON `End`.
    End = 3,
    /// Question before hello, in a fleet: JSON `Locate`.
    Locate = 4,
    /// Numbers that no event will have: JSON `Missing`.
    Missing = 5,
    /// Answer to hello: JSON `Welcome`.
    Welcome = 0x81,
    /// Watermarks of one stream, header only.
    Ack = 0x82,
    /// Answer to end: JSON `Bye`.
    Bye = 0x83,
    /// The recorder ends this connection: JSON `ErrorReply`.
    Error = 0x84,
    /// Answer to locate: JSON `Located`.
    Located = 0x85,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<FrameKind> {
        [
            FrameKind::Hello,
            FrameKind::Event,
            FrameKind::End,
            FrameKind::Locate,
            FrameKind::Missing,
            FrameKind::Welcome,
            FrameKind::Ack,
            FrameKind::Bye,
            FrameKind::Error,
            FrameKind::Located,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

impl std::fmt::Display for FrameKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FrameKind::Hello => "hello",
            FrameKind::Event => "event",
            FrameKind::End => "end",
            FrameKind::Welcome => "welcome",
            FrameKind::Ack => "ack",
            FrameKind::Bye => "bye",
            FrameKind::Error => "error",
            FrameKind::Locate => "locate",
            FrameKind::Missing => "missing",
            FrameKind::Located => "located",
        })
    }
}

/// A decoded frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Stream id, below 65536; 0 in control frames.
    pub stream: u32,
    /// Sequence number of the event within its stream.
    pub sequence: u64,
    /// Due time of the event, ns since the Unix epoch; in an ack the number of lost events.
    pub timestamp_ns: u64,
    /// Bytes of payload that follow the header.
    pub length: u64,
    /// CRC-32 ISO-HDLC of the payload.
    pub crc: u32,
    /// Meaning depends on the kind; 0 in events.
    pub a: u64,
    /// Meaning depends on the kind; 0 in events.
    pub b: u64,
}

impl Header {
    /// Header of a control frame with this payload.
    pub fn control(kind: FrameKind, payload: &[u8]) -> Header {
        Header {
            kind,
            stream: 0,
            sequence: 0,
            timestamp_ns: 0,
            length: payload.len() as u64,
            crc: crc32(payload),
            a: 0,
            b: 0,
        }
    }

    /// The header's bytes on the wire.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0u8; HEADER_BYTES];
        out[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4] = self.kind as u8;
        out[5] = VERSION;
        out[8..12].copy_from_slice(&self.stream.to_le_bytes());
        out[12..16].copy_from_slice(&self.crc.to_le_bytes());
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..32].copy_from_slice(&self.timestamp_ns.to_le_bytes());
        out[32..40].copy_from_slice(&self.length.to_le_bytes());
        out[40..48].copy_from_slice(&self.a.to_le_bytes());
        out[48..56].copy_from_slice(&self.b.to_le_bytes());
        let crc = crc32(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Stream id and payload length, unchecked.
    pub(super) fn glance(bytes: &[u8; HEADER_BYTES]) -> (u32, u64) {
        (u32_at(bytes, 8), u64_at(bytes, 32))
    }

    /// Decodes a header.
    ///
    /// # Errors
    /// Invalid magic, version, checksum, flags, reserved field, kind or stream id, checked in
    /// this order.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, WireError> {
        if u32_at(bytes, 0) != MAGIC {
            return Err(WireError::NotKeepup { looks_like: looks_like(bytes) });
        }
        if bytes[5] != VERSION {
            return Err(WireError::Version { found: u32::from(bytes[5]) });
        }
        let (computed, stated) = (crc32(&bytes[..60]), u32_at(bytes, 60));
        if computed != stated {
            return Err(WireError::HeaderChecksum { computed, stated });
        }
        let flags = u64::from(bytes[6]) | u64::from(bytes[7]) << 8;
        if flags != 0 {
            return Err(WireError::Field { field: "flags", value: flags, allowed: "0" });
        }
        let reserved = u32_at(bytes, 56);
        if reserved != 0 {
            return Err(WireError::Field { field: "reserved", value: u64::from(reserved), allowed: "0" });
        }
        let Some(kind) = FrameKind::from_byte(bytes[4]) else {
            return Err(WireError::Field {
                field: "kind",
                value: u64::from(bytes[4]),
                allowed: "1 to 5 and 129 to 133",
            });
        };
        let stream = u32_at(bytes, 8);
        if stream >= STREAM_ID_END {
            return Err(WireError::Field {
                field: "stream",
                value: u64::from(stream),
                allowed: "0 to 65535",
            });
        }
        Ok(Header {
            kind,
            stream,
            crc: u32_at(bytes, 12),
            sequence: u64_at(bytes, 16),
            timestamp_ns: u64_at(bytes, 24),
            length: u64_at(bytes, 32),
            a: u64_at(bytes, 40),
            b: u64_at(bytes, 48),
        })
    }
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    let mut field = [0u8; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    let mut field = [0u8; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Likely protocol for the error message: browsers, probes and TLS clients connect to any port.
fn looks_like(bytes: &[u8; HEADER_BYTES]) -> &'static str {
    const HTTP: [&[u8]; 8] =
        [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"CONNECT ", b"PRI * HTTP", b"HTTP/"];
    if HTTP.iter().any(|start| bytes.starts_with(start)) {
        "these bytes look like HTTP"
    } else if bytes[0] == 0x16 && bytes[1] == 0x03 {
        "these bytes look like TLS"
    } else if bytes.starts_with(b"SSH-") {
        "these bytes look like SSH"
    } else {
        "the first four bytes are not \"KUP1\""
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
