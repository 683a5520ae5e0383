//! Formulas for buses, PCI Express, Ethernet and Fibre Channel. MB = 10^6 bytes.
use super::{Evaluated, evaluated, number};
use crate::formulas::{bus, link};
use crate::papers::PaperUnit;

/// Share of data bits (8b/10b).
const CODING_SHARE: f64 = 0.8;
/// MB/s per Gbit/s.
const MB_PER_GBIT: f64 = 125.0;
/// Headers of IPv4 and TCP with timestamps, bytes.
const TCP_HEADERS_BYTES: f64 = 52.0;
/// Preamble, Ethernet header, checksum and gap, bytes.
const ETHERNET_FRAME_BYTES: f64 = 38.0;
/// Overhead of a Fibre Channel frame: start, header, checksum, end and six idles, bytes.
const FRAME_OVERHEAD_BYTES: f64 = 60.0;

fn peak(bits: f64, mhz: f64) -> f64 {
    bus::parallel_peak(bits / 8.0, mhz)
}

pub(super) fn bus_peak(bits: f64, mhz: f64) -> Evaluated {
    evaluated(peak(bits, mhz), PaperUnit::MegabytesPerSecond, format!("{bits} bit / 8 x {mhz} MHz"))
}

pub(super) fn bus_share(rate_mib_per_s: f64, bits: f64, mhz: f64) -> Evaluated {
    let rate = PaperUnit::MebibytesPerSecond.in_base(rate_mib_per_s) / 1e6;
    let steps = format!("{rate_mib_per_s} MiB/s / ({bits} bit / 8 x {mhz} MHz)");
    evaluated(100.0 * rate / peak(bits, mhz), PaperUnit::Percent, steps)
}

pub(super) fn pcie_rate(lanes: f64, lane_gt_per_s: f64) -> Evaluated {
    let steps = format!("{lanes} x {lane_gt_per_s} GT/s x 8/10 / 8");
    evaluated(bus::pcie_line(lanes, lane_gt_per_s, CODING_SHARE), PaperUnit::GigabytesPerSecond, steps)
}

pub(super) fn pcie_lanes(ethernet_gbit_per_s: f64, mtu_bytes: f64, lane_gt_per_s: f64) -> Evaluated {
    let payload = ethernet_payload(ethernet_gbit_per_s, mtu_bytes).value;
    let lane = bus::pcie_line(1.0, lane_gt_per_s * 1e3, CODING_SHARE);
    let needed = payload / lane;
    let width = bus::pcie_lanes_for(payload, lane).map(f64::from);
    let steps = format!(
        "{} MB/s of payload / {} MB/s = {}, rounded up to 1, 2, 4, 8 or 16",
        number(payload),
        number(lane),
        number(needed)
    );
    evaluated(width.unwrap_or_else(|| needed.ceil()), PaperUnit::Lanes, steps)
}

pub(super) fn ethernet_line(ethernet_gbit_per_s: f64) -> Evaluated {
    let steps = format!("{ethernet_gbit_per_s} Gbit/s / 8");
    evaluated(ethernet_gbit_per_s * MB_PER_GBIT, PaperUnit::MegabytesPerSecond, steps)
}

pub(super) fn ethernet_payload(ethernet_gbit_per_s: f64, mtu_bytes: f64) -> Evaluated {
    let cost = link::ethernet_cost(mtu_bytes, TCP_HEADERS_BYTES, ETHERNET_FRAME_BYTES);
    let steps = format!(
        "{ethernet_gbit_per_s} Gbit/s / 8 x ({mtu_bytes} - {TCP_HEADERS_BYTES}) / \
         ({mtu_bytes} + {ETHERNET_FRAME_BYTES})"
    );
    evaluated(ethernet_gbit_per_s * MB_PER_GBIT / cost, PaperUnit::MegabytesPerSecond, steps)
}

fn frame_steps(loop_mb_per_s: f64, frame_bytes: f64) -> String {
    format!("{loop_mb_per_s} MB/s x {frame_bytes} / ({frame_bytes} + {FRAME_OVERHEAD_BYTES})")
}

pub(super) fn frame_payload(loop_mb_per_s: f64, frame_bytes: f64) -> Evaluated {
    let rate = loop_mb_per_s / link::frame_cost(frame_bytes, FRAME_OVERHEAD_BYTES);
    evaluated(rate, PaperUnit::MegabytesPerSecond, frame_steps(loop_mb_per_s, frame_bytes))
}

pub(super) fn frame_share(stream_mbit_per_s: f64, loop_mb_per_s: f64, frame_bytes: f64) -> Evaluated {
    let stream = PaperUnit::MegabitsPerSecond.in_base(stream_mbit_per_s) / 1e6;
    let steps = format!("{stream} MB/s / ({})", frame_steps(loop_mb_per_s, frame_bytes));
    let rate = frame_payload(loop_mb_per_s, frame_bytes).value;
    evaluated(100.0 * stream / rate, PaperUnit::Percent, steps)
}

pub(super) fn loop_turn(nodes: f64, words_each: f64, line_gbit_per_s: f64) -> Evaluated {
    let steps = format!("{nodes} x {words_each} x {} bit / {line_gbit_per_s} Gbit/s", link::WORD_BITS);
    let seconds = link::loop_turn(nodes, words_each, line_gbit_per_s * 1e9, 0.0);
    evaluated(seconds * 1e6, PaperUnit::Microseconds, steps)
}

/// Loss of `free_mb_per_s` by the bus and by its other traffic.
pub(super) fn loss_beside(free_mb_per_s: f64, loss_percent: f64, beside_mb_per_s: f64) -> Evaluated {
    let alone = free_mb_per_s * (1.0 - loss_percent / 100.0);
    let steps = format!(
        "1 - ({free_mb_per_s} MB/s x (1 - {loss_percent} %) - {beside_mb_per_s} MB/s) / {free_mb_per_s} MB/s"
    );
    evaluated(100.0 * bus::loss_beside(free_mb_per_s, alone, beside_mb_per_s), PaperUnit::Percent, steps)
}
