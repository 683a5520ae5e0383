//! Wire format of pvAccess, the protocol of EPICS: what both sides of a connection send
//! (<https://docs.epics-controls.org/en/latest/pv-access/Protocol-Messages.html>).
mod output;
mod reader;

use crate::wire::ElementType;

pub use output::Output;
pub use reader::{Bits, Reader, Status};

/// Length of a message header.
pub const HEADER_BYTES: usize = 8;
/// First byte of a header.
const MAGIC: u8 = 0xCA;
/// Version of the protocol in our headers.
const VERSION: u8 = 2;

/// Flag: a control message, without a body.
pub const FLAG_CONTROL: u8 = 0x01;
/// Flag: the message is, or ends, a segmented one.
pub const FLAG_LAST: u8 = 0x20;
/// Flags of segments; none of them: the message is whole.
pub const FLAG_SEGMENTS: u8 = 0x30;
/// Flag: a server sends the message.
pub const FLAG_SERVER: u8 = 0x40;
/// Flag: numbers are big-endian.
pub const FLAG_BIG_ENDIAN: u8 = 0x80;
/// Control message with the byte order that the server expects.
pub const SET_BYTE_ORDER: u8 = 2;

/// Commands.
pub mod command {
    /// Authentication: the server's offer, and the client's choice.
    pub const CONNECTION_VALIDATION: u8 = 1;
    /// Sign of life; the server returns it.
    pub const ECHO: u8 = 2;
    /// Search for PVs by their names.
    pub const SEARCH: u8 = 3;
    /// Answer to a search.
    pub const SEARCH_RESPONSE: u8 = 4;
    /// Creates a channel to a PV.
    pub const CREATE_CHANNEL: u8 = 7;
    /// Closes a channel.
    pub const DESTROY_CHANNEL: u8 = 8;
    /// End of the authentication.
    pub const CONNECTION_VALIDATED: u8 = 9;
    /// Reads a PV once.
    pub const GET: u8 = 10;
    /// Writes a PV.
    pub const PUT: u8 = 11;
    /// Writes and reads a PV.
    pub const PUT_GET: u8 = 12;
    /// Subscribes to a PV.
    pub const MONITOR: u8 = 13;
    /// Ends a request such as a monitor.
    pub const DESTROY_REQUEST: u8 = 15;
    /// Asks for the type of a PV.
    pub const GET_FIELD: u8 = 17;
    /// Calls a procedure.
    pub const RPC: u8 = 20;
}

/// Subcommands of a monitor.
pub mod monitor {
    /// Creates it.
    pub const INIT: u8 = 0x08;
    /// Ends it.
    pub const DESTROY: u8 = 0x10;
    /// Starts it, or continues it after [`STOP`].
    pub const START: u8 = 0x44;
    /// Stops it for a while.
    pub const STOP: u8 = 0x04;
    /// An acknowledgement, or with [`INIT`] the size of the queue follows.
    pub const PIPELINE: u8 = 0x80;
}

/// First bytes of the descriptions of types.
pub mod code {
    /// No type.
    pub const NULL: u8 = 0xFF;
    /// A structure.
    pub const STRUCTURE: u8 = 0x80;
    /// A union.
    pub const UNION: u8 = 0x81;
    /// A value that describes its own type.
    pub const ANY: u8 = 0x82;
    /// A text.
    pub const TEXT: u8 = 0x60;
    /// A truth value, one byte.
    pub const BOOL: u8 = 0x00;
    /// A signed number of 32 bits.
    pub const INT: u8 = 0x22;
    /// A signed number of 64 bits.
    pub const LONG: u8 = 0x23;
    /// A floating-point number of 64 bits.
    pub const DOUBLE: u8 = 0x43;
    /// Flag of an array.
    pub const FLAG_ARRAY: u8 = 0x08;
}

/// Numbers of pvData by their numbers in its `ScalarType`, which is also their order in the union of an
/// NTNDArray: name, code and type. Truth values come first.
pub const NUMBERS: [(&str, u8, ElementType); 11] = [
    ("boolean", code::BOOL, ElementType::U8),
    ("byte", 0x20, ElementType::I8),
    ("short", 0x21, ElementType::I16),
    ("int", code::INT, ElementType::I32),
    ("long", code::LONG, ElementType::I64),
    ("ubyte", 0x24, ElementType::U8),
    ("ushort", 0x25, ElementType::U16),
    ("uint", 0x26, ElementType::U32),
    ("ulong", 0x27, ElementType::U64),
    ("float", 0x42, ElementType::F32),
    ("double", code::DOUBLE, ElementType::F64),
];

/// A message that does not conform to the protocol, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its flags.
    pub flags: u8,
    /// Its command, or that of a control message.
    pub command: u8,
    /// Length of the body, bytes. Control messages have a value instead of a body.
    pub length: u32,
}

impl Head {
    /// Reads a header; `None` if `bytes` has only a part of it.
    ///
    /// # Errors
    /// It is not a header.
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        if bytes.first().is_some_and(|magic| *magic != MAGIC) || bytes.get(1) == Some(&0) {
            return Err(Malformed("the peer did not send a pvAccess header".to_owned()));
        }
        let Some(&[_, _, flags, command, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = [a, b, c, d];
        let is_big_endian = flags & FLAG_BIG_ENDIAN != 0;
        let length = if is_big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) };
        Ok(Some(Self { flags, command, length }))
    }

    /// Whether the numbers of the message are big-endian.
    #[must_use]
    pub fn is_big_endian(&self) -> bool {
        self.flags & FLAG_BIG_ENDIAN != 0
    }
}
