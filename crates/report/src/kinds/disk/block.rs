//! Block test in the format of bonnie++, one row per phase.

use keepup_results::{DiskPhase, DiskSummary};

use super::phases::{Column, cpu_percent, machine_percent, megabytes, of_places, table};
use crate::page::Block;

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let each = |phase: &DiskPhase| (phase.seconds > 0.0).then_some(phase.operations? as f64 / phase.seconds);
    let columns: [Column<'_>; 7] = [
        ("MB/s", &megabytes, 1),
        ("requests/s", &each, 0),
        ("CPU %", &cpu_percent, 0),
        ("machine %", &machine_percent, 0),
        ("p50, us", &|phase| Some(phase.latency?.p50_ns as f64 / 1e3), 1),
        ("p99, us", &|phase| Some(phase.latency?.p99_ns as f64 / 1e3), 1),
        ("longest, ms", &|phase| Some(phase.latency?.max_ns as f64 / 1e6), 1),
    ];
    let note = "Medians. MB = 10^6 bytes. CPU: keepup; machine: all programs. Both in per cent of one \
                core.";
    of_places(summary, "phase by phase", note, |place| {
        table(summary, place, "phase", |phase| Some(phase.to_owned()), &columns)
    })
}
