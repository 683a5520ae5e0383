//! CRC-32/ISO-HDLC, the polynomial of zlib and MCAP: whole, piecewise, and combined from two
//! parts.
//!
//! Invariant: all three ways give the same value for the same bytes, so a checksum computed on
//! the wire becomes part of a block's checksum without a second pass over the payload.

use crc32fast::Hasher;

/// The generator polynomial of CRC-32/ISO-HDLC, bits reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// x^(2^k) mod P for k = 0..32; x^(2^32) = x, since P is primitive, so the table wraps around.
const SQUARES: [u32; 32] = squares();

/// CRC-32 of `bytes`.
#[inline]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// CRC-32 of bytes that come in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crc32 {
    value: u32,
}

impl Crc32 {
    /// Checksum of zero bytes.
    pub fn new() -> Crc32 {
        Crc32 { value: 0 }
    }

    /// Continues from the checksum of all bytes so far.
    pub fn resume(value: u32) -> Crc32 {
        Crc32 { value }
    }

    /// Adds the next piece.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        let mut hasher = Hasher::new_with_initial(self.value);
        hasher.update(bytes);
        self.value = hasher.finalize();
    }

    /// The checksum of all pieces so far.
    #[inline]
    pub fn value(&self) -> u32 {
        self.value
    }
}

/// Combines the checksums of two neighbouring byte ranges, without their bytes.
///
/// The checksum of a‖b is crc(a)·x^(8·len(b)) + crc(b) over GF(2) modulo P (the method of zlib's
/// `crc32_combine_op`). The power of the last length is cached, so keep one `Combiner` per
/// recurring length: one for message headers, one for payloads.
#[derive(Clone, Copy, Debug)]
pub struct Combiner {
    length: u64,
    power: u32,
}

impl Combiner {
    /// Combiner with an empty cache.
    pub fn new() -> Combiner {
        Combiner { length: 0, power: ONE }
    }

    /// CRC-32 of a‖b from the checksums of a and of b, and the length of b in bytes.
    #[inline]
    pub fn combine(&mut self, crc_a: u32, crc_b: u32, len_b: u64) -> u32 {
        if len_b != self.length {
            self.length = len_b;
            self.power = power_of_x8(len_b);
        }
        multiply(self.power, crc_a) ^ crc_b
    }
}

impl Default for Combiner {
    fn default() -> Combiner {
        Combiner::new()
    }
}

/// The polynomial 1 in reflected bit order.
const ONE: u32 = 1 << 31;

/// a·b mod P, all in reflected bit order, without branches.
#[inline]
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        product ^= b & ((a >> bit) & 1).wrapping_neg();
        b = (b >> 1) ^ (POLYNOMIAL & (b & 1).wrapping_neg());
    }
    product
}

const fn squares() -> [u32; 32] {
    let mut table = [0; 32];
    table[0] = ONE >> 1;
    let mut k = 1;
    while k < 32 {
        table[k] = multiply(table[k - 1], table[k - 1]);
        k += 1;
    }
    table
}

/// x^(8·bytes) mod P.
fn power_of_x8(bytes: u64) -> u32 {
    let mut power = ONE;
    let mut rest = bytes;
    let mut k = 3;
    while rest != 0 {
        if rest & 1 == 1 {
            power = multiply(SQUARES[k % 32], power);
        }
        rest >>= 1;
        k += 1;
    }
    power
}

#[cfg(test)]
#[path = "crc_tests.rs"]
mod tests;
