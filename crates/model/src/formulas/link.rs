//! Links: Ethernet, Fibre Channel, and those of disks.

/// Bits of a transmission word of Fibre Channel on the line: four bytes in 8b/10b (FC-FS).
pub const WORD_BITS: f64 = 40.0;
/// Light in a fibre, seconds for a metre: a refractive index of 1.5.
pub const FIBRE_SECONDS_PER_METRE: f64 = 5e-9;

/// Bytes on an Ethernet for a byte of payload, more than 1: full frames of `mtu_bytes`, of which
/// `header_bytes` are headers of IP and TCP (52 with timestamps) or UDP (28), and around them
/// `frame_bytes` of preamble, header, checksum and gap (38; IEEE 802.3). Line coding is outside the rate.
#[must_use]
pub fn ethernet_cost(mtu_bytes: f64, header_bytes: f64, frame_bytes: f64) -> f64 {
    (mtu_bytes + frame_bytes) / (mtu_bytes - header_bytes)
}

/// Bytes per second of a serial line before frames: symbols per second less the coding, bits to bytes.
#[must_use]
pub fn serial_line(baud: f64, coding_share: f64) -> f64 {
    baud * coding_share / 8.0
}

/// Bytes on a link for a byte of payload, more than 1, in frames of `payload_bytes` with `overhead_bytes`
/// around each. Fibre Channel has 60: start 4, header 24, checksum 4, end 4, six idles 24 (FC-PH).
#[must_use]
pub fn frame_cost(payload_bytes: f64, overhead_bytes: f64) -> f64 {
    (payload_bytes + overhead_bytes) / payload_bytes
}

/// Seconds for one turn of a Fibre Channel loop: each node delays it by so many words (at most 6; FC-AL), and
/// the fibre by its length.
#[must_use]
pub fn loop_turn(nodes: f64, words_each: f64, baud: f64, fibre_metres: f64) -> f64 {
    nodes * words_each * WORD_BITS / baud + fibre_metres * FIBRE_SECONDS_PER_METRE
}

/// Part of a loop's time in which data go, 0 to 1: a node that wins the loop moves `tenancy_bytes` at
/// `bytes_per_second`, and opening and closing cost `turns` turns.
#[must_use]
pub fn tenancy_share(tenancy_bytes: f64, bytes_per_second: f64, turns: f64, turn_seconds: f64) -> f64 {
    let moving = tenancy_bytes / bytes_per_second;
    moving / (moving + turns * turn_seconds)
}
