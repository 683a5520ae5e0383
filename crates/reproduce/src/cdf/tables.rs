//! The tables and figures of the logger's paper with this machine in them.
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
use crate::found::{CellFound, Reproduced};
use crate::published::{Edition, MIB};

pub(super) const MB: f64 = 1e6;
/// Bytes that errors are counted over, so that the figures can be read.
const PETABYTE: f64 = 1e15;
/// Detectors that the logger's rate is held against: that of the paper, and two of today.
pub(super) const DETECTORS: [&str; 3] = ["csl", "eiger2-4m", "jungfrau"];

/// All tables.
pub(super) fn all(found: &Reproduced<'_>, edition: &Edition) -> Vec<PaperTable> {
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

fn here(name: impl Into<String>, cells: Vec<PaperCell>) -> PaperRow {
    PaperRow { name: name.into(), is_here: true, cells, note: None }
}

fn there(name: impl Into<String>, cells: Vec<PaperCell>) -> PaperRow {
    PaperRow { name: name.into(), is_here: false, cells, note: None }
}

/// Values as a cell, or that there are none.
fn measured(values: &[f64]) -> PaperCell {
    if values.is_empty() { PaperCell::words("not measured") } else { PaperCell::measured(values) }
}

/// Values of a figure over all runs of a cell, in `unit`.
fn values(cell: &CellFound<'_>, what: &str, quantity: Quantity, unit: f64) -> Vec<f64> {
    let figures = cell.cell.figures.iter().filter(|f| f.what == what && f.quantity == quantity);
    figures.flat_map(|figure| figure.values.iter().map(|value| value / unit)).collect()
}

/// What `of` makes of each phase of that name, over all runs.
pub(super) fn of_phases(
    cell: &CellFound<'_>,
    name: &str,
    of: &dyn Fn(&DiskPhase) -> Option<f64>,
) -> Vec<f64> {
    let runs = cell.disks().flat_map(|summary| &summary.runs);
    let phases = runs.flat_map(|run| &run.phases).filter(|phase| phase.name == name);
    phases.filter_map(of).collect()
}

fn cache(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let system = "PC with 2 GB of memory";
    let mut rows = vec![there(system, vec![edition.cell("K8", system, None, PaperUnit::Mebibytes)])];
    for (_, cell) in found.of_kind(CACHE) {
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
        let told = if size.is_empty() { at_least() } else { None };
        rows.push(here("this machine", vec![told.unwrap_or_else(|| measured(&size))]));
    }
    PaperTable {
        title: "Page cache: how much may be written until the first file is read from the disk".into(),
        stands: "section 2".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("page cache", "MiB")],
        rows,
    }
}

/// The paper's rate: that of the first file, times how many there are.
fn normalised(phase: &DiskPhase) -> Option<f64> {
    Some(phase.parts.first()?.bytes_per_second()? * phase.parts.len() as f64 / MB)
}

pub(super) fn moved(phase: &DiskPhase) -> Option<f64> {
    phase.bytes_per_second().map(|rate| rate / MB)
}

fn files(found: &Reproduced<'_>, edition: &Edition, verb: &str) -> PaperTable {
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
        rows.push(there(&system, cells.collect()));
    }
    let mut add = |kind, words: &str, of: &dyn Fn(&DiskPhase) -> Option<f64>| {
        for (place, cell) in found.of_kind(kind) {
            let cells =
                (1..=FILES_MAX).map(|n| measured(&of_phases(cell, &format!("{verb} {n} at once"), of)));
            rows.push(here(format!("{place}, {words}"), cells.collect()));
        }
    };
    add(FILES, "normalised as in the paper", &normalised);
    add(FILES, "all that was moved", &moved);
    add(DIRECT, "past the cache, all that was moved", &moved);
    PaperTable {
        title: format!("Simultaneous {verb}s by the number of files"),
        stands: "figure 1".into(),
        head: "system".into(),
        columns: (1..=FILES_MAX)
            .map(|n| PaperColumn::new(if n == 1 { "1 file".into() } else { format!("{n} files") }, "MB/s"))
            .collect(),
        rows,
    }
}

/// A setting of the throttled writers: how many, the pause between two events in ms, and what they and the
/// reader moved in each run, MB/s.
pub(super) struct Throttled {
    writers: u32,
    pause_ms: f64,
    written: Vec<f64>,
    pub(super) read: Vec<f64>,
}

/// "2 writers pausing 5ms, 1 reader flat out" as 2 and 5.
pub(super) fn setting(name: &str) -> Option<(u32, f64)> {
    let writers = name.split(' ').next()?.parse().ok()?;
    let pause = name.split_once(" pausing ").and_then(|(_, rest)| rest.split("ms").next()?.parse().ok());
    Some((writers, pause.unwrap_or(0.0)))
}

pub(super) fn throttled_settings(found: &Reproduced<'_>) -> Vec<Throttled> {
    let mut settings: Vec<Throttled> = Vec::new();
    let cells = found.of_kind(THROTTLE);
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

/// Pauses that were measured, shortest first, ms.
fn pauses(settings: &[Throttled]) -> Vec<f64> {
    let mut pauses: Vec<f64> = settings.iter().filter(|s| s.writers > 0).map(|s| s.pause_ms).collect();
    pauses.sort_by(f64::total_cmp);
    pauses.dedup();
    pauses
}

/// What the most writers wrote over what one did, for each pause, and how many they were.
pub(super) fn growth(settings: &[Throttled]) -> Option<(u32, Vec<f64>)> {
    let most = settings.iter().map(|s| s.writers).max().filter(|most| *most > 1)?;
    let of = |writers, pause| {
        let of_it = settings.iter().find(|s| s.writers == writers && s.pause_ms == pause)?;
        median(&of_it.written)
    };
    let growths = pauses(settings).into_iter().filter_map(|p| Some(of(most, p)? / of(1, p)?));
    Some((most, growths.collect()))
}

fn throttled(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let system = "one RAID controller";
    let unit = PaperUnit::MegabytesPerSecond;
    let published = vec![
        edition.cell_of("K4", system, "one reader beside throttled writers", "read rate", unit),
        edition.cell_of("K4", system, "throttled writers beside one reader", "write rate", unit),
    ];
    let settings = throttled_settings(found);
    let read: Vec<f64> = settings.iter().flat_map(|s| s.read.iter().copied()).collect();
    let (most, growths) = growth(&settings).unwrap_or_default();
    let title = format!("{most} writers write, times what 1 does");
    PaperTable {
        title: "One reader beside writers that pause after each event of 256 KiB".into(),
        stands: "figures 2 and 3".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("read rate", "MB/s"), PaperColumn::new(title, "")],
        rows: vec![
            there(system, published),
            here("this machine, all settings", vec![measured(&read), measured(&growths)]),
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
        title: format!("{what} rate during N simultaneous throttled writes"),
        stands: stands.to_owned(),
        x: PaperColumn::new("writers", ""),
        y: PaperColumn::new(format!("{what} rate"), "MB/s"),
        is_log_x: false,
        series,
        note: Some("the paper's chart is lost".into()),
    };
    if settings.is_empty() {
        return Vec::new();
    }
    vec![curve("figure 2", "read", series(&|s| &s.read)), curve("figure 3", "write", series(&|s| &s.written))]
}

/// Volumes alone, all of them at once, and the share of the sum that is left: each over all runs, MB/s.
pub(super) fn together(found: &Reproduced<'_>, kind: &str) -> Option<[Vec<f64>; 3]> {
    let cells = found.of_kind(kind);
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

fn at_once(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let system = "two RAID controllers";
    let published = edition.cell("K5", system, None, PaperUnit::MegabytesPerSecond);
    let mut rows = vec![there(system, vec![PaperCell::default(), published, PaperCell::default()])];
    for (kind, words) in [(TWO_WRITE, "writes"), (TWO_READ, "reads")] {
        let cells = match together(found, kind) {
            Some(figures) => figures.iter().map(|values| measured(values)).collect(),
            None => vec![PaperCell::words("not measured"); 3],
        };
        rows.push(here(format!("this machine, {words}"), cells));
    }
    PaperTable {
        title: "Volumes one by one and all at once".into(),
        stands: "figure 4".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("sum of each alone", "MB/s"),
            PaperColumn::new("at once", "MB/s"),
            PaperColumn::new("of the sum", "%"),
        ],
        rows,
    }
}

/// Settings of the network test: flows, how the buffers are set, and each run's rate in MiB/s.
pub(super) fn flows(found: &Reproduced<'_>) -> Vec<(usize, String, Vec<f64>)> {
    let mut settings: Vec<(usize, String, Vec<f64>)> = Vec::new();
    for kind in [NETWORK, BUFFERS] {
        let cells = found.of_kind(kind);
        let summaries = cells.iter().flat_map(|(_, cell)| cell.nets());
        for run in summaries.flat_map(|summary| &summary.runs) {
            let Some(rate) = run.goodput(None).map(|rate| rate / MIB) else { continue };
            let buffers = run.name.split_once(", ").map_or("buffers by the kernel", |(_, rest)| rest);
            let known = settings.iter_mut().find(|(n, name, _)| *n == run.flows.len() && name == buffers);
            match known {
                Some((_, _, rates)) => rates.push(rate),
                None => settings.push((run.flows.len(), buffers.to_owned(), vec![rate])),
            }
        }
    }
    settings
}

fn network(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let unit = PaperUnit::MebibytesPerSecond;
    let published = |system: &str| {
        let of = |condition| edition.cell("K6", system, Some(condition), unit);
        there(system, vec![of("one process"), of("two processes or more"), PaperCell::default()])
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
        rows.push(here(name, cells.to_vec()));
    }
    PaperTable {
        title: "Network by the number of processes there, of flows over loopback here".into(),
        stands: "section 3".into(),
        head: "system, buffers".into(),
        columns: ["1 flow", "2 flows", "4 flows"].map(|title| PaperColumn::new(title, "MiB/s")).to_vec(),
        rows,
    }
}

/// Corrupt files per petabyte read: what was found, or the bound at 95 % when there were none.
pub(super) fn per_petabyte(corrupt: f64, bytes: f64) -> PaperCell {
    if corrupt > 0.0 {
        return PaperCell::published(corrupt / bytes * PETABYTE);
    }
    let bound = poisson_interval(0, bytes / PETABYTE).map(|interval| interval.upper);
    PaperCell { value: bound, note: Some("none; 95 %: below".into()), ..PaperCell::default() }
}

fn errors(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let published = |system: &str| {
        let of = |quantity: &str| edition.cell_of("K9", system, "ext3", quantity, PaperUnit::Items);
        let copies = of("copies");
        let bytes = copies.value.unwrap_or_default() * FILE_BYTES as f64;
        let corrupt = of("corrupt files");
        let rate = per_petabyte(corrupt.value.unwrap_or_default(), bytes);
        let terabytes = PaperCell::published(bytes / 1e12);
        there(system, vec![copies, terabytes, of("ECC errors"), corrupt, rate])
    };
    let mut rows = vec![published("RAID 5"), published("RAID 10")];
    for (_, cell) in found.of_kind(ERRORS) {
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
            rows.push(here("this machine, all volumes and runs", cells));
        }
    }
    PaperTable {
        title: "Bit errors: files of 1 GB there, copied, read back and compared by MD5".into(),
        stands: "section 4".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("copies", ""),
            PaperColumn::new("read back", "TB"),
            PaperColumn::new("errors that drives or kernel told", ""),
            PaperColumn::new("corrupt files", ""),
            PaperColumn::new("corrupt files per PB", ""),
        ],
        rows,
    }
}

/// By how much the counters of errors rose that could be read.
fn counted(soaks: &[&keepup_results::SoakSummary]) -> PaperCell {
    let counters = soaks.iter().flat_map(|soak| &soak.counters);
    let rises: Vec<u64> = counters.filter_map(|c| Some(c.after?.saturating_sub(c.first?))).collect();
    match rises.is_empty() {
        true => PaperCell::words("no counter can be read"),
        false => PaperCell::published(rises.iter().sum::<u64>() as f64),
    }
}

/// Rates of a logger's cell, MB/s: of the first events, and of all.
pub(super) fn logged(cell: &CellFound<'_>) -> [Vec<f64>; 2] {
    let runs: Vec<_> = cell.records().flat_map(|summary| &summary.runs).collect();
    let first = runs.iter().filter_map(|run| run.first.as_ref()?.received.bytes_per_second());
    let all = runs.iter().map(|run| run.bytes_per_second());
    [first.map(|rate| rate / MB).collect(), all.map(|rate| rate / MB).collect()]
}

fn logger(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let system = "logger on the PC, events of 256 KiB";
    let of = |condition| edition.cell("K7", system, Some(condition), PaperUnit::MegabytesPerSecond);
    let mut rows = vec![
        there(system, vec![of("first 1000 events"), of("all 20000 events")]),
        there(format!("{system}, without disk"), vec![PaperCell::default(), of("without writing to disk")]),
    ];
    for (kind, words) in [(LOGGER, "this machine"), (TO_NULL, "this machine, without disk")] {
        for (place, cell) in found.of_kind(kind) {
            let name = if place.is_empty() { words.to_owned() } else { format!("{words}, {place}") };
            rows.push(here(name, logged(cell).iter().map(|rates| measured(rates)).collect()));
        }
    }
    PaperTable {
        title: "The logger: its first events as they arrive, 1000 of 20000 there, and all until durable"
            .into(),
        stands: "section 5".into(),
        head: "system".into(),
        columns: vec![PaperColumn::new("first", "MB/s"), PaperColumn::new("all", "MB/s")],
        rows,
    }
}

/// What the logger did at its best, where it wrote: B/s, the median of the runs.
pub(super) fn best(found: &Reproduced<'_>) -> Option<f64> {
    let rates = found.of_kind(LOGGER);
    rates.iter().filter_map(|(_, cell)| median(&logged(cell)[1])).reduce(f64::max).map(|rate| rate * MB)
}

/// A detector's rate, B/s, and how many machines of `each` take it: just so, and with the head-room that its
/// profile wants.
pub(super) fn needed(detector: &str, each: f64) -> Option<[f64; 3]> {
    let profile = builtin(detector).ok()?;
    let rate = profile.required_bytes_per_second();
    Some([rate, (rate / each).ceil(), (rate * profile.headroom / each).ceil()])
}

fn machines(found: &Reproduced<'_>, edition: &Edition) -> PaperTable {
    let cells = |detector: &str, each: f64| {
        let [rate, just, with] = needed(detector, each)?;
        Some([rate / MB, each / MB, just, with].map(PaperCell::published).to_vec())
    };
    let unit = PaperUnit::MegabytesPerSecond;
    let system = "logger on the PC, events of 256 KiB";
    let published = edition.cell("K7", system, Some("all 20000 events"), unit).value;
    let published = published.and_then(|rate| cells("csl", rate * MB)).map(|cells| PaperRow {
        note: Some(format!("the paper says {}", edition.text("K8", ["", "", "machines"], PaperUnit::Items))),
        ..there("csl, on the paper's PCs", cells)
    });
    let mut rows: Vec<PaperRow> = published.into_iter().collect();
    if let Some(each) = best(found) {
        let of = |name: &&str| Some(here(format!("{name}, on machines as this one"), cells(name, each)?));
        rows.extend(DETECTORS.iter().filter_map(of));
    }
    PaperTable {
        title: "Machines that it takes to keep a detector".into(),
        stands: "section 6".into(),
        head: "detector".into(),
        columns: vec![
            PaperColumn::new("detector", "MB/s"),
            PaperColumn::new("one machine", "MB/s"),
            PaperColumn::new("machines", ""),
            PaperColumn::new("with its profile's head-room", ""),
        ],
        rows,
    }
}
