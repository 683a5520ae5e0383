//! Tables and figures of the CDF logger paper with this machine added.
use keepup_measure::stats::median;
use keepup_measure::sum::Sums;
use keepup_model::papers::PaperUnit;
use keepup_plan::builtin;
use keepup_results::{
    DiskFinding, DiskPhase, PaperCell, PaperColumn, PaperCurve, PaperRow, PaperSeries, PaperTable, Quantity,
};

use super::reliability::{burn_in, errors};
use super::{
    BUFFERS, CACHE, DIRECT, FILES, FILES_MAX, LOGGER, NETWORK, THROTTLE, TO_NULL, TOGETHER, TWO_READ,
    TWO_WRITE, is_remote,
};
use crate::NOT_MEASURED;
use crate::measured::{CellResults, Reproduced, measured};
use crate::published::{MIB, PublishedPaper};

pub(super) const MB: f64 = 1e6;
/// Detectors compared with the logger: that of the paper, and two current ones.
pub(super) const DETECTORS: [&str; 3] = ["csl", "eiger2-4m", "jungfrau"];

/// All tables.
pub(super) fn all(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperTable> {
    vec![
        cache(found, edition),
        files(found, edition, "write"),
        files(found, edition, "read"),
        throttled(found, edition),
        throttled_together(found, edition),
        at_once(found),
        network(found, edition),
        burn_in(found, edition),
        errors(found, edition),
        logger(found, edition),
        machines(found, edition),
    ]
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
    let mut rows =
        vec![PaperRow::published(system, vec![edition.cell("K8", system, None, PaperUnit::Mebibytes)])];
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
        rows.push(PaperRow::here("this machine", vec![bound.unwrap_or_else(|| measured(&size))]));
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
        rows.push(PaperRow::published(&system, cells.collect()));
    }
    let mut add = |kind, words: &str, of: &dyn Fn(&DiskPhase) -> Option<f64>| {
        for (place, cell) in found.cells_of_kind(kind) {
            let cells =
                (1..=FILES_MAX).map(|n| measured(&of_phases(cell, &format!("{verb} {n} at once"), of)));
            rows.push(PaperRow::here(format!("{place}, {words}"), cells.collect()));
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
    pub(super) writers: u32,
    pub(super) pause_ms: f64,
    pub(super) written: Vec<f64>,
    pub(super) read: Vec<f64>,
}

/// Parses "2 writers pausing 5ms, 1 reader flat out" as 2 and 5.
pub(super) fn setting(name: &str) -> Option<(u32, f64)> {
    let writers = name.split(' ').next()?.parse().ok()?;
    let pause = name.split_once(" pausing ").and_then(|(_, rest)| rest.split("ms").next()?.parse().ok());
    Some((writers, pause.unwrap_or(0.0)))
}

/// Settings of the first volume.
pub(super) fn throttled_settings(found: &Reproduced<'_>) -> Vec<Throttled> {
    found.cells_of_kind(THROTTLE).first().map_or_else(Vec::new, |(_, cell)| settings_of(cell))
}

/// Settings of a cell.
fn settings_of(cell: &CellResults<'_>) -> Vec<Throttled> {
    let mut settings: Vec<Throttled> = Vec::new();
    for phase in cell.disks().flat_map(|summary| &summary.runs).flat_map(|run| &run.phases) {
        let Some((writers, pause_ms)) = setting(&phase.name) else { continue };
        let rate = |writes| {
            let parts = phase.parts.iter().filter(|part| part.writes == writes);
            parts.filter_map(|part| part.bytes_per_second()).float_sum() / MB
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
            PaperRow::published(system, published),
            PaperRow::here(
                "this machine, first volume, all settings",
                vec![measured(&read), measured(&growths)],
            ),
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
    let mut curves = vec![
        curve("figure 2", "read", series(&|s| &s.read)),
        curve("figure 3", "write", series(&|s| &s.written)),
    ];
    curves.extend(figure_4(found));
    curves
}

/// Medians of read and write rate together, MB/s, by writers and pause.
fn sums(cell: &CellResults<'_>) -> Vec<(u32, f64, f64)> {
    let sum = |s: &Throttled| Some((s.writers, s.pause_ms, median(&s.written)? + median(&s.read)?));
    settings_of(cell).iter().filter_map(sum).collect()
}

/// Settings of the volumes at once: writers, pause, sum of the rates of each volume alone, and rate at once.
pub(super) fn together_sums(found: &Reproduced<'_>) -> Vec<(u32, f64, f64, f64)> {
    let alone: Vec<_> = found.cells_of_kind(THROTTLE).iter().map(|(_, cell)| sums(cell)).collect();
    let Some((_, cell)) = found.cells_of_kind(TOGETHER).first().copied() else { return Vec::new() };
    let with_alone = |(writers, pause, at_once): (u32, f64, f64)| {
        let of = |sums: &Vec<(u32, f64, f64)>| {
            sums.iter().find(|(w, p, _)| (*w, *p) == (writers, pause)).map(|(_, _, rate)| *rate)
        };
        let rates: Option<Vec<f64>> = alone.iter().map(of).collect();
        Some((writers, pause, rates?.iter().float_sum(), at_once))
    };
    sums(cell).into_iter().filter_map(with_alone).collect()
}

/// Figure 4: read and write rates together of all volumes at once.
fn figure_4(found: &Reproduced<'_>) -> Option<PaperCurve> {
    let sums = together_sums(found);
    let mut pauses: Vec<f64> = sums.iter().filter(|s| s.0 > 0).map(|s| s.1).collect();
    pauses.sort_by(f64::total_cmp);
    pauses.dedup();
    let series = pauses.into_iter().map(|pause| {
        let points = sums.iter().filter(|s| s.0 == 0 || s.1 == pause).map(|s| (f64::from(s.0), s.3));
        PaperSeries { name: format!("pauses of {pause} ms"), is_here: true, points: points.collect() }
    });
    let series: Vec<PaperSeries> = series.collect();
    (!series.is_empty()).then(|| PaperCurve {
        title: "Read and write rates together, with N throttled writers and a reader on each volume".into(),
        stands: "figure 4".into(),
        x: PaperColumn::new("writers on each volume", ""),
        y: PaperColumn::new("sum of all rates", "MB/s"),
        is_log_x: false,
        series,
        note: Some("the chart of the paper is lost".into()),
    })
}

/// Figure 4 as a table.
fn throttled_together(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let published = edition.cell("K5", "two RAID controllers", None, PaperUnit::MegabytesPerSecond);
    let words = PaperRow::published(
        "two RAID controllers",
        vec![PaperCell::default(), published, PaperCell::default()],
    );
    let mut rows = vec![words];
    for (writers, pause, alone, at_once) in together_sums(found) {
        let name = match writers {
            0 => "this machine, readers only".to_owned(),
            1 => format!("this machine, 1 writer pausing {pause} ms and 1 reader each"),
            n => format!("this machine, {n} writers pausing {pause} ms and 1 reader each"),
        };
        let cells = [alone, at_once, 100.0 * at_once / alone].map(PaperCell::published);
        rows.push(PaperRow::here(name, cells.to_vec()));
    }
    if rows.len() == 1 {
        rows.push(PaperRow::here("this machine", vec![PaperCell::words(NOT_MEASURED); 3]));
    }
    PaperTable {
        title: "Throttled writers and a reader on all volumes at once".into(),
        stands: "figure 4".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("each volume alone, sum", "MB/s"),
            PaperColumn::new("at once", "MB/s"),
            PaperColumn::new("ratio", "%"),
        ],
        rows,
    }
}

/// Sum of the single rates and concurrent rate in MB/s, and their ratio in per cent, of all runs.
pub(super) fn together(found: &Reproduced<'_>, kind: &str) -> Option<[Vec<f64>; 3]> {
    let cells = found.cells_of_kind(kind);
    let mut figures: [Vec<f64>; 3] = Default::default();
    for run in cells.iter().flat_map(|(_, cell)| cell.disks()).flat_map(|summary| &summary.runs) {
        let (all, alone) = run.phases.split_last()?;
        let sum: f64 = alone.iter().filter_map(moved).float_sum();
        let all = moved(all)?;
        if sum > 0.0 {
            figures[0].push(sum);
            figures[1].push(all);
            figures[2].push(100.0 * all / sum);
        }
    }
    (!figures[0].is_empty()).then_some(figures)
}

fn at_once(found: &Reproduced<'_>) -> PaperTable {
    let row = |(kind, words): (&str, &str)| {
        let cells = match together(found, kind) {
            Some(figures) => figures.iter().map(|values| measured(values)).collect(),
            None => vec![PaperCell::words(NOT_MEASURED); 3],
        };
        PaperRow::here(format!("this machine, {words}"), cells)
    };
    PaperTable {
        title: "Volumes one at a time and concurrently, without throttling".into(),
        stands: "not in the paper".into(),
        head: "system".into(),
        columns: vec![
            PaperColumn::new("sum of single rates", "MB/s"),
            PaperColumn::new("concurrent", "MB/s"),
            PaperColumn::new("ratio", "%"),
        ],
        rows: [(TWO_WRITE, "writes"), (TWO_READ, "reads")].map(row).into(),
    }
}

/// Network settings: flows, buffers, and the rate of each run in MiB/s.
pub(super) fn flows(found: &Reproduced<'_>) -> Vec<(usize, String, Vec<f64>)> {
    let mut settings: Vec<(usize, String, Vec<f64>)> = Vec::new();
    for kind in [NETWORK, BUFFERS] {
        for (direction, cell) in found.cells_of_kind(kind) {
            let way = match (is_remote(&cell.cell.command), direction) {
                (false, _) => "loopback",
                (true, "receive") => "from the other host",
                (true, _) => "to the other host",
            };
            for run in cell.nets().flat_map(|summary| &summary.runs) {
                let Some(rate) = run.goodput(None).map(|rate| rate / MIB) else { continue };
                let buffers =
                    run.name.split_once(", ").map_or("buffers sized by the kernel", |(_, rest)| rest);
                let setting = format!("{way}, {buffers}");
                let known =
                    settings.iter_mut().find(|(n, name, _)| *n == run.flows.len() && *name == setting);
                match known {
                    Some((_, _, rates)) => rates.push(rate),
                    None => settings.push((run.flows.len(), setting, vec![rate])),
                }
            }
        }
    }
    settings
}

fn network(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let unit = PaperUnit::MebibytesPerSecond;
    let published = |system: &str| {
        let of = |condition| edition.cell("K6", system, Some(condition), unit);
        PaperRow::published(
            system,
            vec![of("one process"), of("two processes or more"), PaperCell::default()],
        )
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
        rows.push(PaperRow::here(name, cells.to_vec()));
    }
    PaperTable {
        title: "Network by number of processes (paper) or of flows (this machine)".into(),
        stands: "section 3".into(),
        head: "system, buffers".into(),
        columns: ["1 flow", "2 flows", "4 flows"].map(|title| PaperColumn::new(title, "MiB/s")).to_vec(),
        rows,
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
        PaperRow::published(system, vec![of(first), of(all)]),
        PaperRow::published(
            format!("{system}, without disk"),
            vec![PaperCell::default(), of("without writing to disk")],
        ),
    ];
    for (kind, words) in [(LOGGER, "this machine"), (TO_NULL, "this machine, without disk")] {
        for (place, cell) in found.cells_of_kind(kind) {
            let name = if place.is_empty() { words.to_owned() } else { format!("{words}, {place}") };
            rows.push(PaperRow::here(name, logged(cell).iter().map(|rates| measured(rates)).collect()));
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

/// Rates of the logger with disks in the place with the highest median: lowest, median and highest, B/s.
pub(super) fn best(found: &Reproduced<'_>) -> Option<[f64; 3]> {
    let places = found.cells_of_kind(LOGGER);
    let of = |cell: &CellResults<'_>| {
        let PaperCell { lowest, value, highest, .. } = PaperCell::measured(&logged(cell)[1]);
        Some([lowest? * MB, value? * MB, highest? * MB])
    };
    places.iter().filter_map(|(_, cell)| of(cell)).max_by(|a, b| a[1].total_cmp(&b[1]))
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
        ..PaperRow::published("csl, on the PCs of the paper", cells)
    });
    let mut rows: Vec<PaperRow> = published.into_iter().collect();
    if let Some([_, each, _]) = best(found) {
        let of = |name: &&str| {
            Some(PaperRow::here(format!("{name}, on machines like this one"), cells(name, each)?))
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
