//! Formulas that derive claims from numbers, one variant each, with inputs and units.
mod links;
mod machine;

use serde::{Deserialize, Serialize};

use super::PaperUnit;

/// A formula and its inputs, as given by a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Formula {
    /// Words from which on a transfer that must be set up takes less time than single accesses.
    BreakEven {
        /// Setting up, once, us.
        set_up_us: f64,
        /// One word by single accesses, us.
        single_us: f64,
        /// One word by the transfer, us.
        transfer_us: f64,
        /// The paper's words in each of these: 2 where it counts halves.
        words_each: f64,
    },
    /// Rate of words that take so long each.
    WordRate {
        /// A word, bytes.
        word_bytes: f64,
        /// Time of a word, us.
        word_us: f64,
    },
    /// Mean of some numbers over the mean of others, of the same unit.
    Ratio {
        /// Those above the line.
        over: Vec<f64>,
        /// Those below it.
        under: Vec<f64>,
    },
    /// Highest rate of a parallel bus: its width each clock.
    BusPeak {
        /// Width, bits.
        bits: f64,
        /// Clock, MHz: 33 and 66 are 33.33 and 66.67.
        mhz: f64,
    },
    /// Share of that rate which some rate is.
    BusShare {
        /// The rate, MiB/s.
        rate_mib_per_s: f64,
        /// Width, bits.
        bits: f64,
        /// Clock, MHz.
        mhz: f64,
    },
    /// Rate of lanes of PCI Express in one direction, 8b/10b, before packets.
    PcieRate {
        /// Lanes.
        lanes: f64,
        /// Transfers of each lane, GT/s.
        lane_gt_per_s: f64,
    },
    /// Lanes of PCI Express, 8b/10b, that take the payload of Ethernet: the next width that is made.
    PcieLanes {
        /// Ethernet, Gbit/s.
        ethernet_gbit_per_s: f64,
        /// Its largest packet, bytes.
        mtu_bytes: f64,
        /// Transfers of each lane, GT/s.
        lane_gt_per_s: f64,
    },
    /// Rate of Ethernet's line.
    EthernetLine {
        /// Ethernet, Gbit/s.
        ethernet_gbit_per_s: f64,
    },
    /// Payload of TCP over Ethernet, with timestamps: (MTU - 52) / (MTU + 38) of the line.
    EthernetPayload {
        /// Ethernet, Gbit/s.
        ethernet_gbit_per_s: f64,
        /// Its largest packet, bytes.
        mtu_bytes: f64,
    },
    /// Payload of a Fibre Channel loop: frames have 60 bytes beside it.
    FramePayload {
        /// The loop's rate after decoding, MB/s.
        loop_mb_per_s: f64,
        /// Payload of a frame, bytes.
        frame_bytes: f64,
    },
    /// Share of that payload which a stream takes.
    FrameShare {
        /// The stream, Mbit/s.
        stream_mbit_per_s: f64,
        /// The loop's rate after decoding, MB/s.
        loop_mb_per_s: f64,
        /// Payload of a frame, bytes.
        frame_bytes: f64,
    },
    /// Time of one turn of a Fibre Channel loop: each node holds some words of 40 bits on the line.
    LoopTurn {
        /// Nodes.
        nodes: f64,
        /// Words that each holds.
        words_each: f64,
        /// The line's rate, Gbit/s.
        line_gbit_per_s: f64,
    },
    /// Machines that reach a rate together.
    Machines {
        /// The rate, MB/s.
        target_mb_per_s: f64,
        /// What one machine does, MB/s.
        each_mb_per_s: f64,
    },
    /// Room of mirrored disks as a share of that with one disk's parity.
    MirrorRoom {
        /// Disks.
        disks: f64,
    },
    /// Rate when each byte goes through one stage and only then through the other.
    OneAfterAnother {
        /// Rate of one stage, MB/s.
        first_mb_per_s: f64,
        /// Rate of the other, MB/s.
        second_mb_per_s: f64,
    },
    /// Rate of the second stage that makes the whole so slow, when one follows the other.
    SecondStage {
        /// Rate of the first stage, MB/s.
        first_mb_per_s: f64,
        /// Rate of both together, MB/s.
        both_mb_per_s: f64,
    },
    /// Rate of requests each of which begins with a movement of the heads.
    RandomRate {
        /// The movement, ms.
        access_ms: f64,
        /// A request, KiB.
        request_kib: f64,
        /// Rate while it is transferred, MB/s.
        stream_mb_per_s: f64,
    },
    /// Loss when a bus that costs some share already has to carry something else beside it.
    LossBeside {
        /// Rate without the bus in the way, MB/s.
        free_mb_per_s: f64,
        /// What the bus alone costs, per cent.
        loss_percent: f64,
        /// What it carries beside it, MB/s.
        beside_mb_per_s: f64,
    },
    /// Commands that a transfer takes, each of so many segments.
    Commands {
        /// The transfer, bytes.
        transfer_bytes: f64,
        /// Segments of a command.
        segments: f64,
        /// A segment, bytes.
        segment_bytes: f64,
    },
    /// Cycles of a processor that is busy all the time, for each byte.
    CyclesPerByte {
        /// The processor, MHz.
        mhz: f64,
        /// The rate, MB/s.
        rate_mb_per_s: f64,
    },
    /// So many groups of so many.
    Total {
        /// Groups.
        groups: f64,
        /// In each of them.
        each: f64,
    },
}

/// What a formula comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Worked {
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: PaperUnit,
    /// The left side of the arithmetic, with the inputs: "2 ms / (2.42 us - 0.35 us)".
    pub steps: String,
}

fn worked(value: f64, unit: PaperUnit, steps: String) -> Worked {
    Worked { value, unit, steps }
}

impl Formula {
    /// Works it out.
    #[must_use]
    pub fn work(&self) -> Worked {
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
