//! Test of the camera group: every series of every run, in the units of its listing.

use keepup_results::{DiskPhase, DiskRun, DiskSummary};

use super::phases::{of_places, rates};
use crate::format::fixed;
use crate::page::Block;
use crate::table::{Cell, Table, left, right};

/// Note below the table.
const NOTE: &str = "The original listing prints MiB (2^20 bytes) as MB.";

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let mut blocks = rates(summary);
    blocks.extend(of_places(summary, "all series, in the units of the listing", NOTE, |place| {
        listing(summary, place)
    }));
    blocks
}

fn listing(summary: &DiskSummary, place: &str) -> Table {
    let row = |run: &DiskRun, phase: &DiskPhase| -> Vec<Cell> {
        let mib = phase.bytes as f64 / f64::from(1 << 20);
        let rate = (phase.seconds > 0.0).then(|| mib / phase.seconds);
        vec![
            run.repeat.to_string().into(),
            phase.name.as_str().into(),
            phase.files.to_string().into(),
            fixed(Some(mib), 0).into(),
            fixed(Some(phase.seconds), 3).into(),
            fixed(rate, 2).into(),
        ]
    };
    let runs = summary.runs.iter().filter(|run| run.place() == place);
    let rows = runs.flat_map(|run| run.phases.iter().map(move |phase| row(run, phase)));
    let columns =
        vec![right("run"), left("series"), right("files"), right("MiB"), right("time, s"), right("MiB/s")];
    Table { columns, rows: rows.collect() }
}
