//! Formulas that derive claims from numbers, one variant each, with inputs and units.
mod links;
mod machine;

use serde::{Deserialize, Serialize};

use super::PaperUnit;

/// A formula and its inputs, as given by a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Formula {
    /// Number of words from which a block transfer with set-up time is faster than single accesses.
    BreakEven {
        /// Set-up time, us.
        set_up_us: f64,
        /// Time per word, single accesses, us.
        single_us: f64,
        /// Time per word, transfer, us.
        transfer_us: f64,
        /// The paper's words per word here: 2 if it counts half words.
        words_each: f64,
    },
    /// Rate from the time per word.
    WordRate {
        /// Word size, bytes.
        word_bytes: f64,
        /// Time per word, us.
        word_us: f64,
    },
    /// Ratio of two means in the same unit.
    Ratio {
        /// Numerator.
        over: Vec<f64>,
        /// Denominator.
        under: Vec<f64>,
    },
    /// Peak rate of a parallel bus: its width per clock.
    BusPeak {
        /// Width, bits.
        bits: f64,
        /// Clock, MHz. 33 and 66 mean 33.33 and 66.67.
        mhz: f64,
    },
    /// Share of the peak rate of a parallel bus.
    BusShare {
        /// Rate, MiB/s.
        rate_mib_per_s: f64,
        /// Width, bits.
        bits: f64,
        /// Clock, MHz.
        mhz: f64,
    },
    /// Rate of PCI Express lanes in one direction with 8b/10b coding, without packet overhead.
    PcieRate {
        /// Lanes.
        lanes: f64,
        /// Transfer rate per lane, GT/s.
        lane_gt_per_s: f64,
    },
    /// PCI Express lanes (8b/10b) for the payload of Ethernet, rounded up to an existing width.
    PcieLanes {
        /// Ethernet, Gbit/s.
        ethernet_gbit_per_s: f64,
        /// MTU, bytes.
        mtu_bytes: f64,
        /// Transfer rate per lane, GT/s.
        lane_gt_per_s: f64,
    },
    /// Line rate of Ethernet.
    EthernetLine {
        /// Ethernet, Gbit/s.
        ethernet_gbit_per_s: f64,
    },
    /// Payload rate of TCP over Ethernet with timestamps: (MTU - 52) / (MTU + 38) of the line rate.
    EthernetPayload {
        /// Ethernet, Gbit/s.
        ethernet_gbit_per_s: f64,
        /// MTU, bytes.
        mtu_bytes: f64,
    },
    /// Payload rate of a Fibre Channel loop: frames have 60 bytes of overhead.
    FramePayload {
        /// Decoded rate of the loop, MB/s.
        loop_mb_per_s: f64,
        /// Payload of a frame, bytes.
        frame_bytes: f64,
    },
    /// Share of that payload rate used by a stream.
    FrameShare {
        /// Rate of the stream, Mbit/s.
        stream_mbit_per_s: f64,
        /// Decoded rate of the loop, MB/s.
        loop_mb_per_s: f64,
        /// Payload of a frame, bytes.
        frame_bytes: f64,
    },
    /// Round-trip time of a Fibre Channel loop, where each node holds some 40-bit words.
    LoopTurn {
        /// Nodes.
        nodes: f64,
        /// Words held by each node.
        words_each: f64,
        /// Line rate, Gbit/s.
        line_gbit_per_s: f64,
    },
    /// Number of machines for a rate.
    Machines {
        /// Required rate, MB/s.
        target_mb_per_s: f64,
        /// Rate of one machine, MB/s.
        each_mb_per_s: f64,
    },
    /// Capacity of mirrored disks relative to single parity.
    MirrorRoom {
        /// Disks.
        disks: f64,
    },
    /// Rate of two stages in sequence.
    OneAfterAnother {
        /// Rate of one stage, MB/s.
        first_mb_per_s: f64,
        /// Rate of the other, MB/s.
        second_mb_per_s: f64,
    },
    /// Rate of the second of two stages in sequence, from the total rate.
    SecondStage {
        /// Rate of the first stage, MB/s.
        first_mb_per_s: f64,
        /// Total rate, MB/s.
        both_mb_per_s: f64,
    },
    /// Rate of random requests on a disk.
    RandomRate {
        /// Access time, ms.
        access_ms: f64,
        /// Request size, KiB.
        request_kib: f64,
        /// Transfer rate, MB/s.
        stream_mb_per_s: f64,
    },
    /// Loss by a bus that also carries other traffic.
    LossBeside {
        /// Rate without the bus, MB/s.
        free_mb_per_s: f64,
        /// Loss by the bus alone, per cent.
        loss_percent: f64,
        /// Other traffic, MB/s.
        beside_mb_per_s: f64,
    },
    /// Commands for a transfer, from the segments per command.
    Commands {
        /// Transfer size, bytes.
        transfer_bytes: f64,
        /// Segments per command.
        segments: f64,
        /// Segment size, bytes.
        segment_bytes: f64,
    },
    /// CPU cycles per byte of a fully loaded processor.
    CyclesPerByte {
        /// Clock of the processor, MHz.
        mhz: f64,
        /// The rate, MB/s.
        rate_mb_per_s: f64,
    },
    /// Total of equal groups.
    Total {
        /// Groups.
        groups: f64,
        /// Items per group.
        each: f64,
    },
}

/// Result of a formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: PaperUnit,
    /// Computation with its inputs: "2 ms / (2.42 us - 0.35 us)".
    pub steps: String,
}

fn evaluated(value: f64, unit: PaperUnit, steps: String) -> Evaluated {
    Evaluated { value, unit, steps }
}

impl Formula {
    /// Evaluates the formula.
    #[must_use]
    pub fn evaluate(&self) -> Evaluated {
        match *self {
            Self::BreakEven { set_up_us, single_us, transfer_us, words_each } => {
                machine::break_even(set_up_us, single_us, transfer_us, words_each)
            }
            Self::WordRate { word_bytes, word_us } => machine::word_rate(word_bytes, word_us),
            Self::Ratio { ref over, ref under } => machine::ratio(over, under),
            Self::BusPeak { bits, mhz } => links::bus_peak(bits, mhz),
            Self::BusShare { rate_mib_per_s, bits, mhz } => links::bus_share(rate_mib_per_s, bits, mhz),
            Self::PcieRate { lanes, lane_gt_per_s } => links::pcie_rate(lanes, lane_gt_per_s),
            Self::PcieLanes { ethernet_gbit_per_s, mtu_bytes, lane_gt_per_s } => {
                links::pcie_lanes(ethernet_gbit_per_s, mtu_bytes, lane_gt_per_s)
            }
            Self::EthernetLine { ethernet_gbit_per_s } => links::ethernet_line(ethernet_gbit_per_s),
            Self::EthernetPayload { ethernet_gbit_per_s, mtu_bytes } => {
                links::ethernet_payload(ethernet_gbit_per_s, mtu_bytes)
            }
            Self::FramePayload { loop_mb_per_s, frame_bytes } => {
                links::frame_payload(loop_mb_per_s, frame_bytes)
            }
            Self::FrameShare { stream_mbit_per_s, loop_mb_per_s, frame_bytes } => {
                links::frame_share(stream_mbit_per_s, loop_mb_per_s, frame_bytes)
            }
            Self::LoopTurn { nodes, words_each, line_gbit_per_s } => {
                links::loop_turn(nodes, words_each, line_gbit_per_s)
            }
            Self::Machines { target_mb_per_s, each_mb_per_s } => {
                machine::machines(target_mb_per_s, each_mb_per_s)
            }
            Self::MirrorRoom { disks } => machine::mirror_room(disks),
            Self::OneAfterAnother { first_mb_per_s, second_mb_per_s } => {
                machine::one_after_another(first_mb_per_s, second_mb_per_s)
            }
            Self::SecondStage { first_mb_per_s, both_mb_per_s } => {
                machine::second_stage(first_mb_per_s, both_mb_per_s)
            }
            Self::RandomRate { access_ms, request_kib, stream_mb_per_s } => {
                machine::random_rate(access_ms, request_kib, stream_mb_per_s)
            }
            Self::LossBeside { free_mb_per_s, loss_percent, beside_mb_per_s } => {
                links::loss_beside(free_mb_per_s, loss_percent, beside_mb_per_s)
            }
            Self::Commands { transfer_bytes, segments, segment_bytes } => {
                machine::commands(transfer_bytes, segments, segment_bytes)
            }
            Self::CyclesPerByte { mhz, rate_mb_per_s } => machine::cycles_per_byte(mhz, rate_mb_per_s),
            Self::Total { groups, each } => machine::total(groups, each),
        }
    }
}

/// Formats with three significant digits, but never rounds before the decimal point.
pub(super) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}
