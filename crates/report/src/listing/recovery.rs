//! Report of a recovery, by `recover`.

use keepup_recording::recover::{RecoverReport, StreamRecovery, VolumeRecovery};
use keepup_results::printable::visible;

use super::{ROWS_SHOWN, megabytes, missing, more, render};
use crate::Style;
use crate::format::{bytes, plural};
use crate::page::{Block, Fact, Item};
use crate::table::{Cell, Table, left, right};

/// Reports what was sealed and removed on each volume, the streams, and what is still missing.
#[must_use]
pub fn recovery(report: &RecoverReport, style: Style) -> String {
    let title = format!("recording {} ({})", visible(&report.name), report.recording);
    let mut facts: Vec<Fact> = report.volumes.iter().flat_map(volume).collect();
    let lost = report.missing_volumes.iter();
    facts.extend(lost.map(|volume| Fact::path("MISSING", format!("volume {}", volume.display()))));
    facts.extend(report.master.iter().map(|path| Fact::path("wrote", path.display().to_string())));
    let conclusion = match (report.complete, report.changed) {
        (true, false) => "nothing to do: the recording is sealed",
        (true, true) => "recovered; events after the last recorded one are unknown",
        (false, _) if !report.missing_volumes.is_empty() => {
            "not complete: mount the missing volume and run keepup recover again"
        }
        (false, _) => "not complete: keepup verify lists damaged and readable events",
    };
    let causes = missing(report.streams.values().flat_map(|stream| stream.missing.clone()));
    let mut below = vec![Item::Table(streams(report))];
    below.extend(more(report.streams.len(), "streams"));
    below.push(Item::Facts(causes));
    render(
        vec![
            Block::new(title, vec![Item::Facts(facts)]),
            Block::new("", below),
            Block::new(conclusion, Vec::new()),
        ],
        style,
    )
}

/// Changes on a volume, and its damage.
fn volume(volume: &VolumeRecovery) -> Vec<Fact> {
    let mut facts = Vec::new();
    for segment in &volume.sealed {
        facts.push(Fact::path("sealed", segment.path.display().to_string()));
        let (blocks, size) = (plural(segment.blocks, "block"), bytes(segment.data_bytes));
        let behind = segment.blocks_behind;
        facts.push(Fact::new("", format!("{blocks}, {behind} of them after the last watermark, {size}")));
        if segment.duplicates > 0 {
            let skipped = plural(segment.duplicates, "block");
            facts.push(Fact::new("", format!("skipped {skipped}: another volume has copies")));
        }
    }
    let removed = volume.removed.iter();
    facts.extend(removed.map(|path| Fact::path("removed", format!("empty segment {}", path.display()))));
    if volume.journal_cut_bytes > 0 {
        let (cut, directory) = (volume.journal_cut_bytes, volume.directory.display());
        facts.push(Fact::path(
            "removed",
            format!("a torn line of {cut} bytes from the journal in {directory}"),
        ));
    }
    for fault in &volume.faults {
        let mut lines = fault.lines();
        facts.push(Fact::path("FAULT", format!("{}; not changed", lines.next().unwrap_or_default())));
        facts.extend(lines.map(|hint| Fact::path("", hint)));
    }
    facts
}

/// Table of streams.
fn streams(report: &RecoverReport) -> Table {
    let row = |(id, stream): (&u32, &StreamRecovery)| -> Vec<Cell> {
        let missing = stream.missing.values().fold(0, |sum: u64, events| sum.saturating_add(*events));
        vec![
            id.to_string().into(),
            // Names are escaped, because senders choose them.
            visible(&stream.name).into(),
            stream.recorded.events.to_string().into(),
            megabytes(stream.recorded.bytes).into(),
            stream.removed.events.to_string().into(),
            missing.to_string().into(),
        ]
    };
    let columns = vec![
        left("stream"),
        left("name"),
        right("events"),
        right("MB"),
        right("removed by --keep"),
        right("missing"),
    ];
    Table { columns, rows: report.streams.iter().take(ROWS_SHOWN).map(row).collect() }
}
