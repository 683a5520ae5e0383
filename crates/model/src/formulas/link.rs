//! Ethernet, Fibre Channel and disk links.

/// Bits of a transmission word of Fibre Channel on the line: four bytes in 8b/10b (FC-FS).
pub const WORD_BITS: f64 = 40.0;
/// Propagation delay of a fibre, seconds per metre: refractive index 1.5.
pub const FIBRE_SECONDS_PER_METRE: f64 = 5e-9;

/// Ethernet bytes per payload byte, more than 1: full frames of `mtu_bytes`, of which
/// `header_bytes` are IP and TCP (52 with timestamps) or UDP (28) headers, plus `frame_bytes` of
/// preamble, header, checksum and gap (38; IEEE 802.3). Line coding is not included.
#[must_use]
pub(crate) fn ethernet_cost(mtu_bytes: f64, header_bytes: f64, frame_bytes: f64) -> f64 {
    (mtu_bytes + frame_bytes) / (mtu_bytes - header_bytes)
}

/// Bytes per second of a serial line before framing: symbol rate times coding, in bytes.
#[must_use]
pub(crate) fn serial_line(baud: f64, coding_share: f64) -> f64 {
    baud * coding_share / 8.0
}

/// Link bytes per payload byte, more than 1, in frames of `payload_bytes` with `overhead_bytes`
/// each. Fibre Channel: 60 (start 4, header 24, checksum 4, end 4, six idles 24; FC-PH).
#[must_use]
pub(crate) fn frame_cost(payload_bytes: f64, overhead_bytes: f64) -> f64 {
    (payload_bytes + overhead_bytes) / payload_bytes
}

/// Round-trip time of a Fibre Channel loop, seconds: delay of each node in words (at most 6;
/// FC-AL), plus propagation.
#[must_use]
pub(crate) fn loop_turn(nodes: f64, words_each: f64, baud: f64, fibre_metres: f64) -> f64 {
    nodes * words_each * WORD_BITS / baud + fibre_metres * FIBRE_SECONDS_PER_METRE
}

/// Data share of a loop's time, 0 to 1: a node that wins the loop transfers `tenancy_bytes` at
/// `bytes_per_second`; opening and closing cost `turns` round trips.
#[must_use]
pub(crate) fn tenancy_share(tenancy_bytes: f64, bytes_per_second: f64, turns: f64, turn_seconds: f64) -> f64 {
    let moving = tenancy_bytes / bytes_per_second;
    moving / (moving + turns * turn_seconds)
}
