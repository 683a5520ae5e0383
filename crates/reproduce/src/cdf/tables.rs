//! Tables and figures of the CDF logger paper with this machine added.
use keepup_measure::stats::{median, poisson_interval};
use keepup_model::papers::PaperUnit;
use keepup_plan::builtin;
use keepup_results::{
    DiskFinding, DiskPhase, PaperCell, PaperColumn, PaperCurve, PaperRow, PaperSeries, PaperTable, Quantity,
};

use super::{
    BUFFERS, CACHE, DIRECT, ERRORS, FILE_BYTES, FILES, FILES_MAX, LOGGER, NETWORK, THROTTLE, TO_NULL,
    TWO_READ, TWO_WRITE,
};
use crate::measured::{CellResults, Reproduced};
use crate::published::{MIB, PublishedPaper};

pub(super) const MB: f64 = 1e6;
/// Reference amount of data for error rates.
const PETABYTE: f64 = 1e15;
/// Detectors compared with the logger: that of the paper, and two current ones.
pub(super) const DETECTORS: [&str; 3] = ["csl", "eiger2-4m", "jungfrau"];

/// All tables.
pub(super) fn all(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperTable> {
    vec![
        cache(found, edition),
        files(found, edition, "write"),
        files(found, edition, "read"),
        throttled(found, edition),
        at_once(found, edition),
        network(found, edition),
        errors(found, edition),
        logger(found, edition),
        machines(found, edition),
    ]
}

fn measured_row(name: impl Into<String>, cells: Vec<PaperCell>) -> PaperRow {
    PaperRow { name: name.into(), is_here: true, cells, note: None }
}

fn published_row(name: impl Into<String>, cells: Vec<PaperCell>) -> PaperRow {
    PaperRow { name: name.into(), is_here: false, cells, note: None }
}

/// Cell of measured values, or "not measured".
fn measured(values: &[f64]) -> PaperCell {
    if values.is_empty() { PaperCell::words("not measured") } else { PaperCell::measured(values) }
}

/// Values of a figure over all runs of a cell, in `unit`.
fn values(cell: &CellResults<'_>, what: &str, quantity: Quantity, unit: f64) -> Vec<f64> {
    let figures = cell.cell.figures.iter().filter(|f| f.what == what && f.quantity == quantity);
    figures.flat_map(|figure| figure.values.iter().map(|value| value / unit)).collect()
}

/// Values of all phases with that name, over all runs.
pub(super) fn of_phases(
    cell: &CellResults<'_>,
    name: &str,
    of: &dyn Fn(&DiskPhase) -> Option<f64>,
) -> Vec<f64> {
    let runs = cell.disks().flat_map(|summary| &summary.runs);
    let phases = runs.flat_map(|run| &run.phases).filter(|phase| phase.name == name);
    phases.filter_map(of).collect()
}

fn cache(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let system = "PC with 2 GB of memory";
    let mut rows = vec![published_row(system, vec![edition.cell("K8", system, None, PaperUnit::Mebibytes)])];
    for (_, cell) in found.cells_of_kind(CACHE) {
        let size = values(cell, "page cache", Quantity::Bytes, MIB);
        let at_least = || {
            let runs = cell.disks().flat_map(|summary| &summary.runs);
            let least = runs.filter_map(|run| match &run.finding {
                Some(DiskFinding::Cache(cache)) if cache.cached_bytes > 0 => Some(cache.cached_bytes as f64),
                _ => None,
            });
            let least = least.reduce(f64::min)?;
            Some(PaperCell { note: Some("more than".into()), ..PaperCell::published((least / MIB).round()) })
        };
        let bound = if size.is_empty() { at_least() } else { None };
        rows.push(measured_row("this machine", vec![bound.unwrap_or_else(|| measured(&size))]));
    }
    PaperTable {
        title: "Page cache: data written before the first file is read from the disk again".into(),
        stands: "section 2".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("page cache", "MiB")],
        rows,
    }
}

/// Rate as defined in the paper: that of the first file times the number of files.
fn normalised(phase: &DiskPhase) -> Option<f64> {
    Some(phase.parts.first()?.bytes_per_second()? * phase.parts.len() as f64 / MB)
}

pub(super) fn moved(phase: &DiskPhase) -> Option<f64> {
    phase.bytes_per_second().map(|rate| rate / MB)
}

fn files(found: &Reproduced<'_>, edition: &PublishedPaper, verb: &str) -> PaperTable {
    let quantity = format!("{verb} rate");
    let mut rows = Vec::new();
    for (id, filesystem) in [("K2", "XFS"), ("K3", "ext3")] {
        let system = format!("RAID 10, 8 x 200 GB, 3ware 7500-8, {filesystem}");
        let cells = (1..=FILES_MAX).map(|n| match n {
            1 => edition.cell_of("K1", &system, "one file", &quantity, PaperUnit::MegabytesPerSecond),
            n => {
                let condition = format!("{n} files at once");
                edition.cell_of(id, &system, &condition, &quantity, PaperUnit::MegabytesPerSecond)
            }
        });
        rows.push(published_row(&system, cells.collect()));
    }
    let mut add = |kind, words: &str, of: &dyn Fn(&DiskPhase) -> Option<f64>| {
        for (place, cell) in found.cells_of_kind(kind) {
            let cells =
                (1..=FILES_MAX).map(|n| measured(&of_phases(cell, &format!("{verb} {n} at once"), of)));
            rows.push(measured_row(format!("{place}, {words}"), cells.collect()));
        }
    };
    add(FILES, "normalised as in the paper", &normalised);
    add(FILES, "total", &moved);
    add(DIRECT, "uncached, total", &moved);
    PaperTable {
        title: format!("Concurrent {verb}s by number of files"),
        stands: "figure 1".into(),
        head: "system".into(),
        columns: (1..=FILES_MAX)
            .map(|n| PaperColumn::new(if n == 1 { "1 file".into() } else { format!("{n} files") }, "MB/s"))
            .collect(),
        rows,
    }
}

/// Setting of the throttled writers: their number, the pause between events in ms, and the rates of writers
/// and reader in each run, MB/s.
pub(super) struct Throttled {
    writers: u32,
    pause_ms: f64,
    written: Vec<f64>,
    pub(super) read: Vec<f64>,
}

/// Parses "2 writers pausing 5ms, 1 reader flat out" as 2 and 5.
pub(super) fn setting(name: &str) -> Option<(u32, f64)> {
    let writers = name.split(' ').next()?.parse().ok()?;
    let pause = name.split_once(" pausing ").and_then(|(_, rest)| rest.split("ms").next()?.parse().ok());
    Some((writers, pause.unwrap_or(0.0)))
}

pub(super) fn throttled_settings(found: &Reproduced<'_>) -> Vec<Throttled> {
    let mut settings: Vec<Throttled> = Vec::new();
    let cells = found.cells_of_kind(THROTTLE);
    let summaries = cells.iter().flat_map(|(_, cell)| cell.disks());
    for phase in summaries.flat_map(|summary| &summary.runs).flat_map(|run| &run.phases) {
        let Some((writers, pause_ms)) = setting(&phase.name) else { continue };
        let rate = |writes| {
            let parts = phase.parts.iter().filter(|part| part.writes == writes);
            parts.filter_map(|part| part.bytes_per_second()).sum::<f64>() / MB
        };
        let known = settings.iter_mut().find(|s| s.writers == writers && s.pause_ms == pause_ms);
        match known {
            Some(known) => {
                known.written.push(rate(true));
                known.read.push(rate(false));
            }
            None => settings.push(Throttled {
                writers,
                pause_ms,
                written: vec![rate(true)],
                read: vec![rate(false)],
            }),
        }
    }
    settings
}

/// Measured pauses, ms, shortest first.
fn pauses(settings: &[Throttled]) -> Vec<f64> {
    let mut pauses: Vec<f64> = settings.iter().filter(|s| s.writers > 0).map(|s| s.pause_ms).collect();
    pauses.sort_by(f64::total_cmp);
    pauses.dedup();
    pauses
}

/// Largest number of writers, and their rate relative to one writer, for each pause.
pub(super) fn growth(settings: &[Throttled]) -> Option<(u32, Vec<f64>)> {
    let most = settings.iter().map(|s| s.writers).max().filter(|most| *most > 1)?;
    let of = |writers, pause| {
        let of_it = settings.iter().find(|s| s.writers == writers && s.pause_ms == pause)?;
        median(&of_it.written)
    };
    let growths = pauses(settings).into_iter().filter_map(|p| Some(of(most, p)? / of(1, p)?));
    Some((most, growths.collect()))
}

/// Event size of the logger, as published: "events of 256 KiB".
fn events(edition: &PublishedPaper) -> &str {
    edition.system("K7").rsplit(", ").next().unwrap_or_default()
}

fn throttled(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let system = "one RAID controller";
    let unit = PaperUnit::MegabytesPerSecond;
    let published = vec![
        edition.cell_of("K4", system, "one reader beside throttled writers", "read rate", unit),
        edition.cell_of("K4", system, "throttled writers beside one reader", "write rate", unit),
    ];
    let settings = throttled_settings(found);
    let read: Vec<f64> = settings.iter().flat_map(|s| s.read.iter().copied()).collect();
    let (most, growths) = growth(&settings).unwrap_or_default();
    let title = format!("rate of {most} writers / rate of 1");
    PaperTable {
        title: format!("One reader and writers that pause after each event ({})", events(edition)),
        stands: "figures 2 and 3".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("read rate", "MB/s"), PaperColumn::new(title, "")],
        rows: vec![
            published_row(system, published),
            measured_row("this machine, all settings", vec![measured(&read), measured(&growths)]),
        ],
    }
}

/// Figures 2 and 3.
pub(super) fn curves(found: &Reproduced<'_>) -> Vec<PaperCurve> {
    let settings = throttled_settings(found);
    let series = |of: &dyn Fn(&Throttled) -> &Vec<f64>| {
        let of_pause = |pause: f64| {
            let same = settings.iter().filter(|s| s.writers == 0 || s.pause_ms == pause);
            let points = same.filter_map(|s| Some((f64::from(s.writers), median(of(s))?)));
            PaperSeries { name: format!("pauses of {pause} ms"), is_here: true, points: points.collect() }
        };
        pauses(&settings).into_iter().map(of_pause).collect::<Vec<_>>()
    };
    let curve = |stands: &str, what: &str, series: Vec<PaperSeries>| PaperCurve {
        title: format!("{what} rate with N concurrent throttled writers"),
        stands: stands.to_owned(),
        x: PaperColumn::new("writers", ""),
        y: PaperColumn::new(format!("{what} rate"), "MB/s"),
        is_log_x: false,
        series,
        note: Some("the chart of the paper is lost".into()),
    };
    if settings.is_empty() {
        return Vec::new();
    }
    vec![curve("figure 2", "read", series(&|s| &s.read)), curve("figure 3", "write", series(&|s| &s.written))]
}

/// Sum of the single rates and concurrent rate in MB/s, and their ratio in per cent, of all runs.
pub(super) fn together(found: &Reproduced<'_>, kind: &str) -> Option<[Vec<f64>; 3]> {
    let cells = found.cells_of_kind(kind);
    let mut figures: [Vec<f64>; 3] = Default::default();
    for run in cells.iter().flat_map(|(_, cell)| cell.disks()).flat_map(|summary| &summary.runs) {
        let (all, alone) = run.phases.split_last()?;
        let sum: f64 = alone.iter().filter_map(moved).sum();
        let all = moved(all)?;
        if sum > 0.0 {
            figures[0].push(sum);
            figures[1].push(all);
            figures[2].push(100.0 * all / sum);
        }
    }
    (!figures[0].is_empty()).then_some(figures)
}

fn at_once(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let system = "two RAID controllers";
    let published = edition.cell("K5", system, None, PaperUnit::MegabytesPerSecond);
    let mut rows = vec![published_row(system, vec![PaperCell::default(), published, PaperCell::default()])];
    for (kind, words) in [(TWO_WRITE, "writes"), (TWO_READ, "reads")] {
        let cells = match together(found, kind) {
            Some(figures) => figures.iter().map(|values| measured(values)).collect(),
            None => vec![PaperCell::words("not measured"); 3],
        };
        rows.push(measured_row(format!("this machine, {words}"), cells));
    }
    PaperTable {
        title: "Volumes one at a time and concurrently".into(),
        stands: "figure 4".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("sum of single rates", "MB/s"),
            PaperColumn::new("concurrent", "MB/s"),
            PaperColumn::new("ratio", "%"),
        ],
        rows,
    }
}

/// Network settings: flows, buffers, and the rate of each run in MiB/s.
pub(super) fn flows(found: &Reproduced<'_>) -> Vec<(usize, String, Vec<f64>)> {
    let mut settings: Vec<(usize, String, Vec<f64>)> = Vec::new();
    for kind in [NETWORK, BUFFERS] {
        let cells = found.cells_of_kind(kind);
        let summaries = cells.iter().flat_map(|(_, cell)| cell.nets());
        for run in summaries.flat_map(|summary| &summary.runs) {
            let Some(rate) = run.goodput(None).map(|rate| rate / MIB) else { continue };
            let buffers = run.name.split_once(", ").map_or("buffers sized by the kernel", |(_, rest)| rest);
            let known = settings.iter_mut().find(|(n, name, _)| *n == run.flows.len() && name == buffers);
            match known {
                Some((_, _, rates)) => rates.push(rate),
                None => settings.push((run.flows.len(), buffers.to_owned(), vec![rate])),
            }
        }
    }
    settings
}

fn network(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let unit = PaperUnit::MebibytesPerSecond;
    let published = |system: &str| {
        let of = |condition| edition.cell("K6", system, Some(condition), unit);
        published_row(system, vec![of("one process"), of("two processes or more"), PaperCell::default()])
    };
    let mut rows = vec![published("IRIX to PC, gigabit Ethernet"), published("PC to PC, gigabit Ethernet")];
    let settings = flows(found);
    let mut names: Vec<&str> = Vec::new();
    for (_, name, _) in &settings {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let of = |n| settings.iter().find(|(flows, buffers, _)| *flows == n && buffers == name);
        let cells = [1, 2, 4].map(|n| of(n).map_or_else(|| measured(&[]), |(_, _, rates)| measured(rates)));
        rows.push(measured_row(name, cells.to_vec()));
    }
    PaperTable {
        title: "Network by number of processes (paper) or of loopback flows (this machine)".into(),
        stands: "section 3".into(),
        head: "system, buffers".into(),
        columns: ["1 flow", "2 flows", "4 flows"].map(|title| PaperColumn::new(title, "MiB/s")).to_vec(),
        rows,
    }
}

/// Corrupt files per petabyte read, or the 95 % bound if there are none.
pub(super) fn per_petabyte(corrupt: f64, bytes: f64) -> PaperCell {
    if corrupt > 0.0 {
        return PaperCell::published(corrupt / bytes * PETABYTE);
    }
    let bound = poisson_interval(0, bytes / PETABYTE).map(|interval| interval.upper);
    PaperCell { value: bound, note: Some("none; below (95 %)".into()), ..PaperCell::default() }
}

fn errors(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let published = |system: &str| {
        let of = |quantity: &str| edition.cell_of("K9", system, "ext3", quantity, PaperUnit::Items);
        let copies = of("copies");
        let bytes = copies.value.unwrap_or_default() * FILE_BYTES as f64;
        let corrupt = of("corrupt files");
        let rate = per_petabyte(corrupt.value.unwrap_or_default(), bytes);
        let terabytes = PaperCell::published(bytes / 1e12);
        published_row(system, vec![copies, terabytes, of("ECC errors"), corrupt, rate])
    };
    let mut rows = vec![published("RAID 5"), published("RAID 10")];
    for (_, cell) in found.cells_of_kind(ERRORS) {
        let soaks: Vec<_> = cell.soaks().collect();
        let bytes: f64 = soaks.iter().map(|soak| soak.totals.read.bytes as f64).sum();
        if bytes > 0.0 {
            let corrupt: f64 = soaks.iter().map(|soak| soak.damage.mismatches as f64).sum();
            let copies: f64 = soaks.iter().map(|soak| soak.totals.files as f64).sum();
            let cells = vec![
                PaperCell::published(copies),
                PaperCell::published(bytes / 1e12),
                counted(&soaks),
                PaperCell::published(corrupt),
                per_petabyte(corrupt, bytes),
            ];
            rows.push(measured_row("this machine, all volumes and runs", cells));
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
        false => PaperCell::published(rises.iter().sum::<u64>() as f64),
    }
}

/// Logger rates, MB/s: of the first events, and of all.
pub(super) fn logged(cell: &CellResults<'_>) -> [Vec<f64>; 2] {
    let runs: Vec<_> = cell.records().flat_map(|summary| &summary.runs).collect();
    let first = runs.iter().filter_map(|run| run.first.as_ref()?.received.bytes_per_second());
    let all = runs.iter().map(|run| run.bytes_per_second());
    [first.map(|rate| rate / MB).collect(), all.map(|rate| rate / MB).collect()]
}

fn logger(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let system = edition.system("K7");
    let [first, all] = ["first", "all"].map(|start| edition.condition("K7", start));
    let of = |condition| edition.cell("K7", system, Some(condition), PaperUnit::MegabytesPerSecond);
    let mut rows = vec![
        published_row(system, vec![of(first), of(all)]),
        published_row(
            format!("{system}, without disk"),
            vec![PaperCell::default(), of("without writing to disk")],
        ),
    ];
    for (kind, words) in [(LOGGER, "this machine"), (TO_NULL, "this machine, without disk")] {
        for (place, cell) in found.cells_of_kind(kind) {
            let name = if place.is_empty() { words.to_owned() } else { format!("{words}, {place}") };
            rows.push(measured_row(name, logged(cell).iter().map(|rates| measured(rates)).collect()));
        }
    }
    PaperTable {
        title: format!("Logger: {first} as received, {all} until durable"),
        stands: "section 5".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("first", "MB/s"), PaperColumn::new("all", "MB/s")],
        rows,
    }
}

/// Highest median rate of the logger with disks, B/s.
pub(super) fn best(found: &Reproduced<'_>) -> Option<f64> {
    let rates = found.cells_of_kind(LOGGER);
    rates.iter().filter_map(|(_, cell)| median(&logged(cell)[1])).reduce(f64::max).map(|rate| rate * MB)
}

/// Rate of a detector in B/s, and the number of machines of `each` B/s for it: without headroom and with
/// that of its profile.
pub(super) fn needed(detector: &str, each: f64) -> Option<[f64; 3]> {
    let profile = builtin(detector).ok()?;
    let rate = profile.required_bytes_per_second();
    Some([rate, (rate / each).ceil(), (rate * profile.headroom / each).ceil()])
}

fn machines(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let cells = |detector: &str, each: f64| {
        let [rate, just, with] = needed(detector, each)?;
        Some([rate / MB, each / MB, just, with].map(PaperCell::published).to_vec())
    };
    let unit = PaperUnit::MegabytesPerSecond;
    let (system, all) = (edition.system("K7"), edition.condition("K7", "all"));
    let published = edition.cell("K7", system, Some(all), unit).value;
    let published = published.and_then(|rate| cells("csl", rate * MB)).map(|cells| PaperRow {
        note: Some(format!(
            "the paper states {}",
            edition.text("K8", ["", "", "machines"], PaperUnit::Items)
        )),
        ..published_row("csl, on the PCs of the paper", cells)
    });
    let mut rows: Vec<PaperRow> = published.into_iter().collect();
    if let Some(each) = best(found) {
        let of = |name: &&str| {
            Some(measured_row(format!("{name}, on machines like this one"), cells(name, each)?))
        };
        rows.extend(DETECTORS.iter().filter_map(of));
    }
    PaperTable {
        title: "Machines required for a detector".into(),
        stands: "section 6".into(),
        head: "detector".into(),
        columns: vec![
            PaperColumn::new("detector", "MB/s"),
            PaperColumn::new("one machine", "MB/s"),
            PaperColumn::new("machines", ""),
            PaperColumn::new("with headroom", ""),
        ],
        rows,
    }
}
