//! The camera group's program: every series of every run, in the units of its listing.

use keepup_results::{DiskPhase, DiskRun, DiskSummary};

use super::phases::{of_places, rates};
use crate::format::fixed;
use crate::page::{Block, Cell, Table, left, right};

/// What is to be known of the columns.
const NOTE: &str = "The listing calls MiB = 2^20 bytes MB.";

pub(super) fn blocks(summary: &DiskSummary) -> Vec<Block> {
    let mut blocks = rates(summary);
    blocks.extend(of_places(summary, "every series, as the listing prints it", NOTE, |place| {
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
