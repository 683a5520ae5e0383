//! Buses: parallel ones such as PCI, VME, and PCI Express.

/// Widths that PCI Express has, in lanes (PCI Express Base Specification).
pub const PCIE_WIDTHS: [u32; 5] = [1, 2, 4, 8, 16];
/// Bytes of a data link packet, which acknowledges or returns credits: with framing (PCI Express Base
/// Specification, generations 1 to 5).
pub const DLLP_BYTES: f64 = 8.0;
/// Part of the line that clock correction takes: an ordered set of 4 symbols in 1538 (the same).
pub const SKIP_SHARE: f64 = 4.0 / 1538.0;

/// Bytes per second of a parallel bus without any overhead: its width, bytes, at each clock.
#[must_use]
pub fn parallel_peak(width_bytes: f64, clock_hz: f64) -> f64 {
    width_bytes * clock_hz
}

/// Clocks of a parallel bus for one clock of data, at least 1: a burst of n data phases pays so many more for
/// address, latency of the target, turnaround and arbitration. From the PCI Local Bus Specification's
/// phases.
#[must_use]
pub fn parallel_cost(width_bytes: f64, burst_bytes: f64, overhead_clocks: f64) -> f64 {
    let phases = burst_bytes / width_bytes;
    (phases + overhead_clocks) / phases
}

/// Bytes per second of a bus with a handshake for each word (VME: ANSI/VITA 1): the slower of the two ends
/// sets the time.
#[must_use]
pub fn handshake_rate(width_bytes: f64, cycle_seconds: f64, response_seconds: f64) -> f64 {
    width_bytes / cycle_seconds.max(response_seconds)
}

/// Bytes per second in each direction of a PCI Express link without packets: transfers of all lanes, less
/// the coding (8b/10b, 128b/130b, or what flits of 256 bytes leave, 236/256).
#[must_use]
pub fn pcie_line(lanes: f64, transfers_per_second: f64, coding_share: f64) -> f64 {
    lanes * transfers_per_second * coding_share / 8.0
}

/// Bytes on the link for a byte of payload, more than 1: each packet of at most `payload_bytes` has a header
/// with framing, sequence number and checksum.
#[must_use]
pub fn packet_cost(payload_bytes: f64, header_bytes: f64) -> f64 {
    (payload_bytes + header_bytes) / payload_bytes
}

/// Part of a PCI Express link that data link packets and clock correction take, where one acknowledgement and
/// one return of credits go out in `interval_bytes`. The public pcie-model (Neugebauer et al., SIGCOMM 2018)
/// takes the specification's interval in symbol times for bytes; a wider link then loses more than it does,
/// for each lane carries a byte in that time.
#[must_use]
pub fn dllp_share(interval_bytes: f64) -> f64 {
    2.0 * DLLP_BYTES / interval_bytes + SKIP_SHARE
}

/// The narrowest PCI Express link that carries so many bytes per second, in lanes; none when even 16 do not.
#[must_use]
pub fn pcie_lanes_for(bytes_per_second: f64, lane_bytes_per_second: f64) -> Option<u32> {
    PCIE_WIDTHS.into_iter().find(|lanes| f64::from(*lanes) * lane_bytes_per_second >= bytes_per_second)
}

/// Bytes per second of a master that waits: requests under way, over the time until an answer is there.
#[must_use]
pub fn window_rate(outstanding: f64, request_bytes: f64, round_trip_seconds: f64) -> f64 {
    outstanding * request_bytes / round_trip_seconds
}

/// Part of its rate that a device loses on a bus that leaves it `alone` bytes per second (itself more than
/// `beside`), when others move `beside` on it; against `free` bytes per second without the bus. From 0 to 1.
#[must_use]
pub fn loss_beside(free: f64, alone: f64, beside: f64) -> f64 {
    1.0 - (alone - beside) / free
}
