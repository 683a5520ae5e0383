//! Bit errors and burn-in of the CDF logger paper with this machine added.
use keepup_measure::stats::poisson_interval;
use keepup_measure::sum::Sums;
use keepup_model::papers::PaperUnit;
use keepup_results::{PaperCell, PaperColumn, PaperRow, PaperTable};

use super::{BURN_IN, ERRORS, FILE_BYTES};
use crate::NOT_MEASURED;
use crate::measured::Reproduced;
use crate::published::PublishedPaper;

/// Reference amount of data for error rates.
const PETABYTE: f64 = 1e15;

/// Corrupt files per petabyte read, or the 95 % bound if there are none.
pub(super) fn per_petabyte(corrupt: f64, bytes: f64) -> PaperCell {
    if corrupt > 0.0 {
        return PaperCell::published(corrupt / bytes * PETABYTE);
    }
    let bound = poisson_interval(0, bytes / PETABYTE).map(|interval| interval.upper);
    PaperCell { value: bound, note: Some("none; below (95 %)".into()), ..PaperCell::default() }
}

pub(super) fn errors(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let published = |system: &str| {
        let of = |quantity: &str| edition.cell_of("K9", system, "ext3", quantity, PaperUnit::Items);
        let copies = of("copies");
        let bytes = copies.value.unwrap_or_default() * FILE_BYTES as f64;
        let corrupt = of("corrupt files");
        let rate = per_petabyte(corrupt.value.unwrap_or_default(), bytes);
        let terabytes = PaperCell::published(bytes / 1e12);
        PaperRow::published(system, vec![copies, terabytes, of("ECC errors"), corrupt, rate])
    };
    let mut rows = vec![published("RAID 5"), published("RAID 10")];
    for (_, cell) in found.cells_of_kind(ERRORS) {
        let soaks: Vec<_> = cell.soaks().collect();
        let bytes: f64 = soaks.iter().map(|soak| soak.totals.read.bytes as f64).float_sum();
        if bytes > 0.0 {
            let corrupt: f64 = soaks.iter().map(|soak| soak.damage.mismatches as f64).float_sum();
            let copies: f64 = soaks.iter().map(|soak| soak.totals.files as f64).float_sum();
            let cells = vec![
                PaperCell::published(copies),
                PaperCell::published(bytes / 1e12),
                counted(&soaks),
                PaperCell::published(corrupt),
                per_petabyte(corrupt, bytes),
            ];
            rows.push(PaperRow::here("this machine, all volumes and runs", cells));
        }
    }
    PaperTable {
        title: format!(
            "Bit errors: copies of files of {}, read back and compared by MD5",
            format_args!("{} GiB", FILE_BYTES >> 30)
        ),
        stands: "section 4".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("copies", ""),
            PaperColumn::new("read back", "TB"),
            PaperColumn::new("errors reported by drives or kernel", ""),
            PaperColumn::new("corrupt files", ""),
            PaperColumn::new("corrupt files per PB", ""),
        ],
        rows,
    }
}

/// Increase of all readable error counters.
fn counted(soaks: &[&keepup_results::SoakSummary]) -> PaperCell {
    let counters = soaks.iter().flat_map(|soak| &soak.counters);
    let rises: Vec<u64> = counters.filter_map(|c| Some(c.after?.saturating_sub(c.first?))).collect();
    match rises.is_empty() {
        true => PaperCell::words("no readable counter"),
        false => PaperCell::published(rises.iter().saturating_sum::<u64>() as f64),
    }
}

/// Burn-in: what was written and read, and what went wrong.
pub(super) fn burn_in(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let system = edition.system("K10");
    let of = |system: &str, condition, quantity| {
        edition.cell_of("K10", system, condition, quantity, PaperUnit::Items)
    };
    let published = vec![
        of(system, "burn-in", "time"),
        PaperCell::default(),
        of(system, "burn-in", "errors"),
        of("3ware Escalade RAID controllers", "all the time", "drive errors"),
    ];
    let mut rows = vec![PaperRow::published(system, published)];
    for (_, cell) in found.cells_of_kind(BURN_IN) {
        let mut soaks: Vec<_> = cell.soaks().collect();
        // With a state file the last result covers all sessions.
        if cell.cell.command.contains(" --state ") {
            soaks.drain(..soaks.len().saturating_sub(1));
        }
        if soaks.is_empty() {
            rows.push(PaperRow::here("this machine", vec![PaperCell::words(NOT_MEASURED); 4]));
            continue;
        }
        let hours: f64 = soaks.iter().map(|soak| soak.totals.elapsed_ns as f64 / 3.6e12).float_sum();
        let terabytes: f64 = soaks.iter().map(|soak| soak.totals.read.bytes as f64 / 1e12).float_sum();
        let damaged: f64 = soaks.iter().map(|soak| soak.damage.mismatches as f64).float_sum();
        let cells = vec![
            PaperCell::published(hours),
            PaperCell::published(terabytes),
            PaperCell::published(damaged),
            counted(&soaks),
        ];
        rows.push(PaperRow::here("this machine, all volumes and runs", cells));
    }
    PaperTable {
        title: "Burn-in: drives that fail early".into(),
        stands: "section 4".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("time", "h"),
            PaperColumn::new("read back", "TB"),
            PaperColumn::new("damaged files", ""),
            PaperColumn::new("errors reported by drives or kernel", ""),
        ],
        rows,
    }
}
