//! Buses: parallel ones such as PCI, VME, and PCI Express.

/// Widths that PCI Express has, in lanes (PCI Express Base Specification).
pub const PCIE_WIDTHS: [u32; 5] = [1, 2, 4, 8, 16];
/// Bytes per second of a parallel bus without overhead: width in bytes times clock.
#[must_use]
pub(crate) fn parallel_peak(width_bytes: f64, clock_hz: f64) -> f64 {
    width_bytes * clock_hz
}

/// Clocks of a parallel bus per data clock, at least 1: a burst of n data phases has additional
/// clocks for address, target latency, turnaround and arbitration. From the PCI Local Bus
/// Specification's phases.
#[must_use]
pub(crate) fn parallel_cost(width_bytes: f64, burst_bytes: f64, overhead_clocks: f64) -> f64 {
    let phases = burst_bytes / width_bytes;
    (phases + overhead_clocks) / phases
}

/// Bytes per second of a bus with a handshake per word (VME: ANSI/VITA 1), limited by the slower
/// end.
#[must_use]
pub(crate) fn handshake_rate(width_bytes: f64, cycle_seconds: f64, response_seconds: f64) -> f64 {
    width_bytes / cycle_seconds.max(response_seconds)
}

/// Bytes per second in each direction of a PCI Express link before packets: transfers of all lanes,
/// less coding (8b/10b, 128b/130b, or 236/256 for 256-byte flits).
#[must_use]
pub(crate) fn pcie_line(lanes: f64, transfers_per_second: f64, coding_share: f64) -> f64 {
    lanes * transfers_per_second * coding_share / 8.0
}

/// Link bytes per payload byte, more than 1: each packet of at most `payload_bytes` has a header
/// with framing, sequence number and checksum.
#[must_use]
pub(crate) fn packet_cost(payload_bytes: f64, header_bytes: f64) -> f64 {
    (payload_bytes + header_bytes) / payload_bytes
}

/// The narrowest PCI Express link for this rate, in lanes; `None` if even 16 are too few.
#[must_use]
pub(crate) fn pcie_lanes_for(bytes_per_second: f64, lane_bytes_per_second: f64) -> Option<u32> {
    PCIE_WIDTHS.into_iter().find(|lanes| f64::from(*lanes) * lane_bytes_per_second >= bytes_per_second)
}

/// Part of a device's rate, 0 to 1, on a bus that leaves it `alone` bytes per second
/// (which is more than `beside`) while others transfer `beside`; relative to `free` bytes per
/// second without the bus.
#[must_use]
pub(crate) fn loss_beside(free: f64, alone: f64, beside: f64) -> f64 {
    1.0 - (alone - beside) / free
}
