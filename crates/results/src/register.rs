//! Result of `keepup register`: read methods of a target at all depths, cost per transfer and
//! register, and break-even lengths.
//!
//! `None` means "not measured" and is written as null. MB = 10^6 bytes.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::head::Kind;
use crate::latency::LatencyFigures;
use crate::test::test_summary;

mod figures;

test_summary! {
    /// Result of a register test.
    pub struct RegisterSummary: Kind::Register, version 2 {
        /// Measurements.
        pub run: Option<RegisterRun>,
        /// Cost per transfer and register for each method.
        pub fits: Vec<RegisterFit>,
        /// All pairs of methods, the simple one first.
        pub break_evens: Vec<RegisterBreakEven>,
    }
}

/// A measured target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRun {
    /// Name.
    pub target: String,
    /// Register width.
    pub width_bits: u32,
    /// Offset of the first register, bytes.
    pub offset: u64,
    /// Whether the same register was read repeatedly.
    pub is_fifo: bool,
    /// Properties of the device.
    pub device: RegisterDevice,
    /// CPU to which the reader was bound.
    pub cpu: Option<usize>,
    /// Cost of a clock call, ns; included in single reads.
    pub clock_ns: f64,
    /// Cost of the load loop itself on memory, s per register; subtracted where a method says so.
    pub loop_seconds_per_register: Option<f64>,
    /// Whether a method read only ones, as if no device answers on the bus.
    pub all_ones: bool,
    /// Methods in the order in which they alternated.
    pub methods: Vec<RegisterMethod>,
}

/// Device and its attachment. `None`: unknown, or not applicable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterDevice {
    /// PCI vendor and device id, as in `1234:11e8`.
    pub id: Option<String>,
    /// Bound driver.
    pub driver: Option<String>,
    /// Link speed as named by the kernel.
    pub link_speed: Option<String>,
    /// Link width in lanes.
    pub link_width: Option<String>,
    /// NUMA node.
    pub numa_node: Option<i32>,
    /// IOMMU group.
    pub iommu_group: Option<String>,
    /// IOMMU mode of that group as named by the kernel: `DMA`, `identity`.
    pub iommu_type: Option<String>,
    /// Configured maximum payload size, bytes; needs root.
    pub payload_bytes_max: Option<u32>,
    /// Maximum read request size of the device, bytes; needs root.
    pub read_request_bytes_max: Option<u32>,
    /// Enabled low-power link states (ASPM), which delay the next access; needs root.
    pub link_states: Option<String>,
    /// System-wide ASPM policy.
    pub aspm: Option<String>,
    /// Whether a file or program simulates the device, so that its timing is not measured.
    pub is_simulated: bool,
    /// Whether this is a virtual machine, where timings show order, not speed.
    pub is_virtual: Option<bool>,
}

/// One access method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterMethod {
    /// Name.
    pub name: String,
    /// Whether it writes one register repeatedly instead of reading.
    pub writes: bool,
    /// Maximum registers per transfer, if limited.
    pub words_max: Option<u64>,
    /// Depths in ascending order.
    pub points: Vec<RegisterPoint>,
    /// Depths skipped because they would have taken too long.
    pub left_out: Vec<u64>,
    /// Whether the loop's own cost was subtracted: only for loads, and only if it is at most a
    /// fifth of the total.
    pub loop_taken_off: bool,
    /// Latencies of single reads, including the clock call.
    pub single: Option<LatencyFigures>,
}

/// One method at one depth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterPoint {
    /// Registers per read.
    pub depth: u64,
    /// Reads per trial.
    pub transfers_per_trial: u64,
    /// Time per read of all registers, for each trial, s.
    pub seconds: Vec<f64>,
    /// CPU time of this process per read, for each trial, s.
    pub cpu_seconds: Vec<f64>,
}

/// Cost of a method: T(n) = set-up + n * each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterFit {
    /// Method.
    pub method: String,
    /// Time cost; `None` with fewer than two depths.
    pub elapsed: Option<RegisterCost>,
    /// CPU cost.
    pub cpu: Option<RegisterCost>,
    /// Depth with the largest deviation from the line, if above 10 %.
    pub knee: Option<RegisterKnee>,
}

/// A fitted line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterCost {
    /// Set-up per transfer, s; may be negative if too small to resolve.
    pub set_up_seconds: f64,
    /// Cost per register, s.
    pub each_seconds: f64,
    /// Registers at which half of the maximum rate is reached (n 1/2).
    pub half_rate_registers: Option<f64>,
    /// Asymptotic rate (r inf), bytes per second.
    pub bytes_per_second: Option<f64>,
}

/// A depth that deviates from the line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterKnee {
    /// Registers.
    pub depth: u64,
    /// Relative deviation of the measured value from the line.
    pub off: f64,
}

/// Comparison of two methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterBreakEven {
    /// Simple method: without a transfer limit, or with the higher cost per register.
    pub simple: String,
    /// Other method, whose advantage is judged.
    pub way: String,
    /// Verdict on time.
    pub elapsed: RegisterVerdict,
    /// Verdict on CPU time.
    pub cpu: RegisterVerdict,
}

/// Range in which a method is cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum RegisterVerdict {
    /// At every length.
    Always,
    /// At no length.
    Never,
    /// From this number of registers on.
    From {
        /// Registers.
        registers: f64,
        /// Lower bound of the 95 % interval.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// Up to this number of registers.
    UpTo {
        /// Registers.
        registers: f64,
        /// Lower bound of the 95 % interval.
        lower: f64,
        /// Upper bound.
        upper: f64,
    },
    /// Not resolved, or beyond the tried depths.
    NotResolved,
}
