//! A request of a trace: small, of fixed size, and in units that do not depend on the source.
use serde::{Deserialize, Serialize};

/// An unknown completion time.
const UNKNOWN_NS: u64 = u64::MAX;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Operation {
    /// Read.
    Read = 0,
    /// Write.
    Write = 1,
    /// Flush of a device, or fsync of a file.
    Flush = 2,
    /// Discard, trim or unmap of a range.
    Discard = 3,
}

impl Operation {
    /// All operations, by number.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Flush, Self::Discard];

    /// The operation with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
        }
    }
}

/// Flags of a request, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// Synchronous (`REQ_SYNC`).
    pub const SYNC: Self = Self(1);
    /// Forced unit access (`REQ_FUA`).
    pub const FUA: Self = Self(2);
    /// Preceded by a flush (`REQ_PREFLUSH`).
    pub const PREFLUSH: Self = Self(4);
    /// Metadata of the file system (`REQ_META`).
    pub const META: Self = Self(8);
    /// Read-ahead (`REQ_RAHEAD`).
    pub const AHEAD: Self = Self(16);
    const KNOWN: u8 = 31;

    /// Flags from bits; `None` if a bit is unknown.
    pub fn of_bits(bits: u8) -> Option<Self> {
        (bits & !Self::KNOWN == 0).then_some(Self(bits))
    }

    /// Bits, as stored in the native format.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Union of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Without `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A request; 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Issue time, ns from the trace's first request.
    pub issue_ns: u64,
    completion_ns: u64,
    /// Offset on its device, bytes.
    pub offset: u64,
    /// Length, bytes; 0 only for a flush.
    pub bytes: u32,
    /// Index of its device in the trace's list of devices.
    pub device: u16,
    /// Operation.
    pub operation: Operation,
    /// Flags.
    pub flags: Flags,
}

impl Record {
    /// Creates a request without completion time. Times in ns, offset and length in bytes.
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

    /// Completion time, ns from the trace's first request, if known.
    pub fn completion_ns(&self) -> Option<u64> {
        (self.completion_ns != UNKNOWN_NS).then_some(self.completion_ns)
    }

    /// End on its device, bytes. Readers ensure that it does not overflow.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.bytes))
    }
}
