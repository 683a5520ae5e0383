//! One request of a trace: small, fixed in size, in units that do not depend on where it came from.
use serde::{Deserialize, Serialize};

/// Marks a completion that is not known.
const UNKNOWN_NS: u64 = u64::MAX;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Operation {
    /// Data comes from the device.
    Read = 0,
    /// Data goes to the device.
    Write = 1,
    /// What was written becomes durable: flush of a device, fsync of a file.
    Flush = 2,
    /// The device may forget the range: discard, trim, unmap.
    Discard = 3,
}

impl Operation {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// The one with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// How a request differs from an ordinary one, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// An ordinary request.
    pub const NONE: Self = Self(0);
    /// Somebody waits for it (`REQ_SYNC`).
    pub const SYNC: Self = Self(1);
    /// Durable when it is done (`REQ_FUA`).
    pub const FUA: Self = Self(2);
    /// The device's cache is flushed before it (`REQ_PREFLUSH`).
    pub const PREFLUSH: Self = Self(4);
    /// Data of the file system itself (`REQ_META`).
    pub const META: Self = Self(8);
    /// Read before anybody asked (`REQ_RAHEAD`).
    pub const AHEAD: Self = Self(16);
    const KNOWN: u8 = 31;

    /// Those bits; nothing when one of them is not known.
    pub fn of_bits(bits: u8) -> Option<Self> {
        (bits & !Self::KNOWN == 0).then_some(Self(bits))
    }

    /// The bits, as the native format stores them.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// These and `other`.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One request; 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it was issued, ns from the trace's first request.
    pub issue_ns: u64,
    completion_ns: u64,
    /// Where it begins on its device, bytes.
    pub offset: u64,
    /// How long it is, bytes; 0 only for a flush.
    pub bytes: u32,
    /// Its device's place in the trace's list of devices.
    pub device: u16,
    /// What it asks for.
    pub operation: Operation,
    /// How it differs from an ordinary one.
    pub flags: Flags,
}

impl Record {
    /// A request whose completion is not known; times in ns, offset and length in bytes.
    pub fn new(issue_ns: u64, operation: Operation, device: u16, offset: u64, bytes: u32) -> Self {
        let flags = Flags::NONE;
        Self { issue_ns, completion_ns: UNKNOWN_NS, offset, bytes, device, operation, flags }
    }

    /// The same request, completed at `completion_ns` from the trace's first request.
    #[must_use]
    pub fn completed(self, completion_ns: Option<u64>) -> Self {
        Self { completion_ns: completion_ns.unwrap_or(UNKNOWN_NS), ..self }
    }

    /// The same request at other times, ns.
    #[must_use]
    pub fn at(self, issue_ns: u64, completion_ns: Option<u64>) -> Self {
        Self { issue_ns, ..self }.completed(completion_ns)
    }

    /// The same request with these flags.
    #[must_use]
    pub fn flagged(self, flags: Flags) -> Self {
        Self { flags, ..self }
    }

    /// When it was completed, ns from the trace's first request, where that is known.
    pub fn completion_ns(&self) -> Option<u64> {
        (self.completion_ns != UNKNOWN_NS).then_some(self.completion_ns)
    }

    /// Where it ends on its device, bytes; the readers see to it that this is a number.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.bytes))
    }
}
