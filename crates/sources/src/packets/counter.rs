//! A packet counter at a fixed place of each packet, such as the 64-bit sequence number of many backends.
/// Widest counter, in bytes.
const BYTES_MAX: usize = 8;

/// Place and meaning of a packet counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// First byte.
    pub offset: usize,
    /// Width, 1 to 8 bytes. A narrow counter wraps around.
    pub bytes: usize,
    /// Only the low 4 bits of its byte, as in VITA 49.
    pub is_half_byte: bool,
    /// Whether the first byte is the least significant one.
    pub is_little_endian: bool,
    /// What it grows by from packet to packet, for example the samples of a packet; at least 1.
    pub step: u64,
}

impl Default for Counter {
    fn default() -> Self {
        Self { offset: 0, bytes: BYTES_MAX, is_half_byte: false, is_little_endian: false, step: 1 }
    }
}

impl Counter {
    /// Parses a place such as `u64be@0`, `u48be@2`, `u32le` or `u4@1`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, offset) = text.split_once('@').unwrap_or((text, "0"));
        let (bits, is_little_endian) = match kind.strip_prefix('u')? {
            // One byte has no order.
            "8" | "4" => ("8", false),
            kind => match kind.split_at_checked(2)? {
                (bits, "be") => (bits, false),
                (bits, "le") => (bits, true),
                _ => return None,
            },
        };
        let bytes = bits.parse::<usize>().ok().filter(|bits| bits % 8 == 0)? / 8;
        let offset = offset.parse().ok().filter(|offset| *offset <= 1024)?;
        let is_half_byte = kind == "u4";
        (1..=BYTES_MAX).contains(&bytes).then_some(Self {
            offset,
            bytes,
            is_half_byte,
            is_little_endian,
            step: 1,
        })
    }

    /// Number of its bits.
    pub(super) fn bits(&self) -> u32 {
        match self.is_half_byte {
            true => 4,
            false => 8 * self.bytes.clamp(1, BYTES_MAX) as u32,
        }
    }

    /// Mask of its bits.
    pub(super) fn mask(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.bits())
    }

    /// Its value in a packet of which at least one byte behind `skip` is recorded.
    pub(super) fn read(&self, packet: &[u8], skip: usize) -> Result<u64, String> {
        let field = packet.get(self.offset..self.offset + self.bytes).filter(|_| packet.len() > skip);
        let Some(field) = field else {
            let needed = (self.offset + self.bytes).max(skip + 1);
            return Err(format!("{} bytes, at least {needed} expected", packet.len()));
        };
        let fold = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let number = match self.is_little_endian {
            true => field.iter().rev().fold(0, fold),
            false => field.iter().fold(0, fold),
        };
        Ok(number & self.mask())
    }
}

/// The number nearest to `reference` of which the last `bits` bits, 1 to 64, are `value`.
pub(super) fn unwrapped(value: u64, bits: u32, reference: u64) -> u64 {
    let shift = u64::BITS - bits.clamp(1, u64::BITS);
    let ahead = (value.wrapping_sub(reference) << shift).cast_signed() >> shift;
    reference.wrapping_add_signed(ahead)
}

#[cfg(test)]
#[path = "counter_tests.rs"]
mod tests;
