//! Transfer sizes and link power management from a function's PCI Express capability.
//!
//! Offsets are those of the PCI Express Base Specification: capability 0x10, Device Control at 8, Link
//! Control at 0x10.

/// Offsets of the capability list and of the status register, and the status bit for a capability list.
const LIST: usize = 0x34;
const STATUS: usize = 0x06;
const HAS_LIST: u16 = 1 << 4;
const EXPRESS: u8 = 0x10;
const DEVICE_CONTROL: usize = 0x08;
const LINK_CONTROL: usize = 0x10;
/// Capabilities lie between the header and the extended space and have at least four bytes each.
const CAPABILITIES_MAX: usize = (0x100 - 0x40) / 4;
/// Smallest payload and read request; the encoded value doubles it.
const STEP_BYTES: u32 = 128;

/// PCI Express settings of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Express {
    /// Maximum payload of a packet, bytes.
    pub(super) payload_bytes_max: u32,
    /// Maximum read request, bytes.
    pub(super) read_request_bytes_max: u32,
    /// Low-power states that the link may enter.
    pub(super) link_states: &'static str,
}

impl Express {
    /// Parses a function's configuration space. `None` without the capability, and for the 64 bytes that can
    /// be read without root.
    pub(super) fn parse(space: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_le_bytes(space.get(at..at + 2)?.try_into().ok()?));
        if word(STATUS)? & HAS_LIST == 0 {
            return None;
        }
        let next = |at: &usize| Some(usize::from(space.get(at + 1)? & 0xfc)).filter(|at| *at != 0);
        let first = Some(usize::from(space.get(LIST)? & 0xfc)).filter(|at| *at != 0);
        let mut all = std::iter::successors(first, next).take(CAPABILITIES_MAX);
        let at = all.find(|at| space.get(*at) == Some(&EXPRESS))?;
        let device = word(at + DEVICE_CONTROL)?;
        Some(Self {
            payload_bytes_max: STEP_BYTES << (device >> 5 & 7),
            read_request_bytes_max: STEP_BYTES << (device >> 12 & 7),
            link_states: ["none", "L0s", "L1", "L0s and L1"][usize::from(word(at + LINK_CONTROL)? & 3)],
        })
    }
}

#[cfg(test)]
#[path = "express_tests.rs"]
mod tests;
