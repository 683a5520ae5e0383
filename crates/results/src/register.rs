//! What `keepup register` found: every way of reading a target's registers at every depth, what a transfer
//! and a register cost, and from where on one way pays.
//!
//! `None` means "not measured" and is written as null. MB = 10^6 bytes.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::LatencyFigures;
use crate::summary::Kind;
use crate::test::test_summary;

mod figures;

test_summary! {
    /// What one test of registers found.
    pub struct RegisterSummary: Kind::Register, version 2 {
        /// What was measured.
        pub run: Option<RegisterRun>,
        /// What a transfer and a register cost by each way.
        pub fits: Vec<RegisterFit>,
        /// Every pair of ways, the simple one first.
        pub break_evens: Vec<RegisterBreakEven>,
    }
}

/// A target that was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRun {
    /// Its name.
    pub target: String,
    /// Of a register.
    pub width_bits: u32,
    /// Where the first register is, bytes.
    pub offset: u64,
    /// Whether the same register was read again and again.
    pub is_fifo: bool,
    /// What is known of the device.
    pub device: RegisterDevice,
    /// Processor that the reader was bound to.
    pub cpu: Option<usize>,
    /// What a call of the clock cost, ns; it is part of single reads.
    pub clock_ns: f64,
    /// What the loop of loads itself cost over memory, s for each register; taken off where a way says so.
    pub loop_seconds_per_register: Option<f64>,
    /// Whether a way read nothing but ones, as when nobody answers on the bus.
    pub all_ones: bool,
    /// All ways, in the order in which they took turns.
    pub methods: Vec<RegisterMethod>,
}

/// A device and how it is attached. `None`: not told, or not a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterDevice {
    /// Vendor and device number of PCI, as in `1234:11e8`.
    pub id: Option<String>,
    /// The driver that it is bound to.
    pub driver: Option<String>,
    /// Speed of the link, as the kernel names it.
    pub link_speed: Option<String>,
    /// Lanes of the link.
    pub link_width: Option<String>,
    /// NUMA node.
    pub numa_node: Option<i32>,
    /// IOMMU group.
    pub iommu_group: Option<String>,
    /// How the IOMMU serves that group, as the kernel names it: `DMA`, `identity`.
    pub iommu_type: Option<String>,
    /// Most payload of a packet that is set, bytes; needs root.
    pub payload_bytes_max: Option<u32>,
    /// Most that the device asks for with one read of memory, bytes; needs root.
    pub read_request_bytes_max: Option<u32>,
    /// States of low power that its link may enter (ASPM), which make the next access wait; needs root.
    pub link_states: Option<String>,
    /// Power management of the links (ASPM policy).
    pub aspm: Option<String>,
    /// Whether a file or a program stands for the device: what is measured is not the device's.
    pub is_simulated: bool,
    /// Whether this machine is a virtual one: what is measured of its devices proves order, not speed.
    pub is_virtual: Option<bool>,
}

/// One way of reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterMethod {
    /// Its name.
    pub name: String,
    /// Whether it writes one register again and again, instead of reading.
    pub writes: bool,
    /// Most registers of one transfer, if there is a limit.
    pub words_max: Option<u64>,
    /// All depths, rising.
    pub points: Vec<RegisterPoint>,
    /// Depths that would have taken too long.
    pub left_out: Vec<u64>,
    /// Whether the loop's own cost was taken off: only from loads, and only where it is at most a fifth of
    /// them.
    pub loop_taken_off: bool,
    /// Single reads, timed one by one; the clock is part of them.
    pub single: Option<LatencyFigures>,
}

/// One way at one depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterPoint {
    /// Registers read at a time.
    pub depth: u64,
    /// How often they were read in a trial.
    pub transfers_per_trial: u64,
    /// Of each trial: how long reading all of them once took, s.
    pub seconds: Vec<f64>,
    /// Of each trial: CPU of this process for that, s.
    pub cpu_seconds: Vec<f64>,
}

/// What a way costs: T(n) = set-up + n * each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterFit {
    /// The way.
    pub method: String,
    /// Of time; `None` with fewer than two depths.
    pub elapsed: Option<RegisterCost>,
    /// Of CPU.
    pub cpu: Option<RegisterCost>,
    /// Where the line is furthest off what was measured, if by more than a tenth.
    pub knee: Option<RegisterKnee>,
}

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterCost {
    /// Of a transfer, s; may come out below zero where it is too small to be seen.
    pub set_up_seconds: f64,
    /// Of a register, s.
    pub each_seconds: f64,
    /// Registers at which half of the highest rate is reached (n 1/2).
    pub half_rate_registers: Option<f64>,
    /// The highest rate (r inf), bytes per second.
    pub bytes_per_second: Option<f64>,
}

/// A depth at which the line does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterKnee {
    /// Registers.
    pub depth: u64,
    /// How far the line is off there, as a part of what was measured.
    pub off: f64,
}

/// Two ways compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterBreakEven {
    /// The simple way: without a limit of its transfers, or with the dearer register.
    pub simple: String,
    /// The other, of which the verdicts say where it takes less.
    pub way: String,
    /// Less time.
    pub elapsed: RegisterVerdict,
    /// Less CPU.
    pub cpu: RegisterVerdict,
}

/// Where a way takes less.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum RegisterVerdict {
    /// At every length.
    Always,
    /// At no length.
    Never,
    /// From so many registers on.
    From {
        /// Registers.
        registers: f64,
        /// Lower end of the 95 % interval.
        lower: f64,
        /// Upper end.
        upper: f64,
    },
    /// Up to so many registers.
    UpTo {
        /// Registers.
        registers: f64,
        /// Lower end of the 95 % interval.
        lower: f64,
        /// Upper end.
        upper: f64,
    },
    /// The measurements do not tell, or only that it lies beyond the depths that were tried.
    NotResolved,
}
