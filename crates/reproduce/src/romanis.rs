//! ROMANIS: acoustic camera with 508 sensors, each stored on one disk, 1.6 Gbit/s in total.
//!
//! Figure 3: rate and CPU by number of disks, with the Iometer settings of the paper. Recording: 508 streams
//! to 1 to N volumes without multiplexing, and read back by sensor, compared with one RAID 0.
mod findings;

use std::sync::LazyLock;

use keepup_measure::stats::median;
use keepup_model::papers::PaperUnit;
use keepup_results::{
    DiskPhase, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable, Quantity,
};
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::fleet::{self, Question, Streams};
use crate::measured::{Reproduced, measured};
use crate::published::{PublishedPaper, cell};
use crate::{
    NamedVolume, PaperRequest, Reproduction, RequestOption, file, label, labelled, scaled, values, volumes,
};

const MB: f64 = 1e6;
/// Event size of a sensor and request size of figure 3. The paper's tool, Iometer, has units of 2^20 bytes.
const EVENT_BYTES: u64 = 2 << 20;
/// Events per sensor at full scale: 64 s of the camera.
const EVENTS_EACH: f64 = 12.0;
/// Shortest recording that answers for the camera, seconds (our choice: the run time of figure 3). Shorter
/// ones may fit into buffers.
const KEPT_SECONDS: f64 = 60.0;
/// Share of each core left by the load that stands for the slower processor: 166 of 550 MHz.
const SLOW_SHARE: f64 = 166.0 / 550.0;
/// File per volume for figure 3 at full scale.
const FILE_BYTES: u64 = 1 << 30;
/// Warm-up and measurement at full scale, seconds: a fifth and a sixth of the paper's.
const RAMP_SECONDS: f64 = 2.0;
const RUN_SECONDS: f64 = 10.0;
/// Shortest measurement, seconds.
const RUN_SECONDS_MIN: f64 = 0.5;
/// Share of the required rate that counts as reached. The last burst of the source may end early or late.
const KEPT: f64 = 0.98;
/// Share of n times the rate of one volume that counts as linear.
const LINEAR: f64 = 0.9;
const NAME: &str = "romanis";
const FIGURE_3: &str = "scaling";
/// Kinds of figure 3: test, words in tables, engine, and whether a load slows the processor down.
const SCALING: [(&str, &str, &str, bool); 4] = [
    (FIGURE_3, "io_uring", "auto", false),
    ("scaling by plain calls", "plain calls", "sync", false),
    ("scaling on a slow processor", "io_uring, slow processor", "auto", true),
    ("scaling by plain calls on a slow processor", "plain calls, slow processor", "sync", true),
];
const RECORDING: &str = "recording";
const RAID: &str = "RAID 0";
/// Label and flag of the highest rate.
const FULL: (&str, &str) = ("at full speed", "max");

/// Published sensors and total rate of the camera.
struct Camera {
    sensors: u64,
    mb_per_s: f64,
    /// Rate in labels.
    label: String,
    /// Rate as a flag.
    flag: String,
}

static CAMERA: LazyLock<Camera> = LazyLock::new(|| {
    let edition = PublishedPaper::of(NAME);
    let of = |condition, quantity, unit| edition.number("F6", ["ROMANIS", condition, quantity], unit);
    let mb_per_s = of("all of it", "rate", PaperUnit::MegabytesPerSecond).unwrap_or_default();
    let sensors = of("", "sensors", PaperUnit::Items).unwrap_or_default() as u64;
    let flag = format!("{mb_per_s} MB/s");
    Camera { sensors, mb_per_s, label: format!("at {flag}"), flag }
});

impl Camera {
    /// Label and flag of its rate.
    fn rate(&self) -> (&str, &str) {
        (&self.label, &self.flag)
    }
}

/// The paper.
pub(crate) struct Romanis;

impl Reproduction for Romanis {
    fn name(&self) -> &'static str {
        NAME
    }

    fn uses(&self, option: RequestOption) -> bool {
        matches!(option, RequestOption::Volume | RequestOption::Raid | RequestOption::Fleet)
    }

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        if let Some(fleet) = &request.fleet {
            let more = vec![("event", amount(request.scale).1)];
            let title = "The acoustic camera: number of hosts";
            return Ok(fleet::campaign(title, request, fleet, (NAME, &camera_streams(), more)));
        }
        let volumes = volumes(request)?;
        let mut tests: Vec<Value> =
            SCALING.iter().map(|kind| labelled(kind.0, &disks(volumes, kind, request))).collect();
        let counts = (1..=volumes.len()).map(|count| (plural(count), values(&volumes[..count])));
        let raid = request.raid.as_ref().map(|raid| {
            let directory = Value::from(raid.display().to_string());
            (RAID.to_owned(), Value::Array(vec![directory]))
        });
        for (place, volumes) in counts.chain(raid) {
            for rate in [CAMERA.rate(), FULL] {
                let settings = sensors(volumes.clone(), rate.1, request.scale);
                tests.push(labelled(&recording(&place, rate), &settings));
            }
        }
        Ok(file("The acoustic camera: parallel disks", 3, Table::new(), [("test", tests)]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = PublishedPaper::of(self.name());
        if fleet::is_fleet(found) {
            return fleet_page(found, &edition);
        }
        let mut page = found.new_page(&edition);
        page.tables = vec![scaling_table(found, &edition), recording_table(found, &edition)];
        page.curves = curves(found);
        page.findings = findings::findings(found);
        page.answers = findings::answers(found, &edition);
        page.limits.extend(findings::limits(found));
        page
    }
}

/// All sensors, whatever the number of hosts.
fn camera_streams() -> Streams {
    Streams::Fixed(u32::try_from(CAMERA.sensors).unwrap_or(u32::MAX))
}

/// Page of the number of hosts.
fn fleet_page(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperPage {
    let built = |quantity| edition.text("F6", ["ROMANIS", "as built", quantity], PaperUnit::Items);
    let question = Question {
        profile: NAME,
        question: format!(
            "How many such hosts does it take to store {} sensors at {} MB/s?",
            CAMERA.sensors, CAMERA.mb_per_s
        ),
        published: format!("{} computers with {} disks, as built.", built("processors"), built("disks")),
        stands: "section II.C",
    };
    fleet::page(found, edition, &question, camera_streams())
}

/// Settings of figure 3: sequential writes of 2 MB, one at a time.
fn disks(
    volumes: &[NamedVolume],
    (_, _, engine, is_slow): &(&str, &str, &'static str, bool),
    request: &PaperRequest,
) -> Vec<(&'static str, Value)> {
    let scale = request.scale;
    let time = |seconds: f64| Value::from(format!("{:.0} ms", seconds * 1e3));
    let mut settings = vec![
        ("verb", "disk scale".into()),
        ("volume", values(volumes)),
        ("outstanding", 1.into()),
        ("request", format!("{EVENT_BYTES} B").into()),
        ("engine", (*engine).into()),
        ("file", scaled(FILE_BYTES, scale, EVENT_BYTES)),
        ("ramp", time(RAMP_SECONDS * scale)),
        ("time", time((RUN_SECONDS * scale).max(RUN_SECONDS_MIN))),
    ];
    if *is_slow {
        let taken = (1.0 - SLOW_SHARE) * f64::from(request.cores.max(1));
        settings.push(("load", format!("cpu={taken:.2}").into()));
    }
    settings
}

/// All sensors, each on one volume.
fn sensors(volumes: Value, rate: &str, scale: f64) -> Vec<(&'static str, Value)> {
    let (events, event) = amount(scale);
    vec![
        ("verb", "trial".into()),
        ("args", "romanis".into()),
        ("streams", (CAMERA.sensors as i64).into()),
        ("placement", "pinned".into()),
        ("events", (events as i64).into()),
        ("event", event),
        ("rate", rate.into()),
        ("read_back", true.into()),
        // The read-back verifies every checksum.
        ("no_verify", true.into()),
        ("volume", volumes),
    ]
}

/// Number and size of events. Scaling reduces their number first, then their size, so that every sensor
/// sends.
fn amount(scale: f64) -> (u64, Value) {
    let each = EVENTS_EACH * scale;
    (CAMERA.sensors * each.round().max(1.0) as u64, scaled(EVENT_BYTES, each.min(1.0), 1024))
}

fn plural(count: usize) -> String {
    format!("{count} {}", if count == 1 { "volume" } else { "volumes" })
}

/// Label of a recording.
fn recording(place: &str, rate: (&str, &str)) -> String {
    label(RECORDING, &format!("{place}, {}", rate.0))
}

/// Number of volumes.
fn count(found: &Reproduced<'_>) -> usize {
    let has = |count: &usize| found.labels("test").contains(&recording(&plural(*count), CAMERA.rate()));
    (1..).take_while(has).count()
}

fn has_raid(found: &Reproduced<'_>) -> bool {
    found.labels("test").contains(&recording(RAID, CAMERA.rate()))
}

/// Recorded places: 1 to N volumes, and the RAID.
fn places(found: &Reproduced<'_>) -> Vec<String> {
    let raid = has_raid(found).then(|| RAID.to_owned());
    (1..=count(found)).map(plural).chain(raid).collect()
}

/// A figure of the writes to `count` volumes.
fn scaling(found: &Reproduced<'_>, count: usize, quantity: Quantity) -> Vec<f64> {
    scaling_by(found, FIGURE_3, count, quantity)
}

/// A figure of the writes of a kind to `count` volumes.
fn scaling_by(found: &Reproduced<'_>, kind: &str, count: usize, quantity: Quantity) -> Vec<f64> {
    found.values(&[("test", kind)], &plural(count), quantity)
}

/// Interrupts of the disks' adapters per request of the writes of a kind to `count` volumes.
fn interrupts(found: &Reproduced<'_>, kind: &str, count: usize) -> Vec<f64> {
    let name = plural(count);
    let runs = found.cells_of_kind(kind).into_iter().flat_map(|(_, cell)| cell.disks());
    let phases = runs.flat_map(|summary| &summary.runs).flat_map(|run| &run.phases);
    let of = |phase: &DiskPhase| {
        let requests = phase.bytes as f64 / EVENT_BYTES as f64;
        Some(phase.storage_interrupts? as f64 / requests).filter(|rate| rate.is_finite())
    };
    phases.filter(|phase| phase.name == name).filter_map(of).collect()
}

/// CPU of the whole machine in per cent of all cores.
fn cpu_percent(found: &Reproduced<'_>, busy: &[f64]) -> Vec<f64> {
    let cores = found.cores().unwrap_or(0) as f64;
    busy.iter().filter(|_| cores > 0.0).map(|busy| 100.0 * busy / cores).collect()
}

fn measured_cell(values: &[f64], unit: f64) -> PaperCell {
    let values: Vec<f64> = values.iter().map(|value| value / unit).collect();
    measured(&values)
}

/// Figure 3 as a table: published statements about the lost curves, then each number of volumes.
fn scaling_table(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let units = [("rate", PaperUnit::MegabytesPerSecond), ("CPU", PaperUnit::Percent)];
    let stands = ["figure 3a", "section III.B"];
    let of_figure = edition.figures().iter().filter(|figure| stands.contains(&figure.place.as_str()));
    let mut rows: Vec<PaperRow> = Vec::new();
    for figure in of_figure {
        let mut cells =
            units.map(
                |(name, unit)| {
                    if figure.quantity == name { cell(figure, unit) } else { PaperCell::default() }
                },
            );
        if cells.iter().all(|cell| *cell == PaperCell::default()) {
            cells[0] = times(figure.quantity.as_str(), cell(figure, PaperUnit::Times));
        }
        let name = format!("{}, {}", figure.system, figure.condition);
        let cells = cells.into_iter().chain(std::iter::repeat_n(PaperCell::default(), 3)).collect();
        rows.push(PaperRow { name, is_here: false, cells, note: figure.note.clone() });
    }
    for (kind, words, _, is_slow) in SCALING {
        rows.extend((1..=count(found)).map(|count| scaling_row(found, (kind, words, is_slow), count)));
    }
    PaperTable {
        title: "Sequential writes of 2 MB, one at a time on each disk".into(),
        stands: "figure 3".into(),
        head: "disks".into(),
        columns: vec![
            PaperColumn::new("rate", "MB/s"),
            PaperColumn::new("CPU", "%"),
            PaperColumn::new("per disk", "MB/s"),
            PaperColumn::new("CPU of the writer", "s/GB"),
            PaperColumn::new("interrupts of the adapters", "per request"),
        ],
        rows,
    }
}

/// Row of the writes of a kind to `count` volumes.
fn scaling_row(found: &Reproduced<'_>, (kind, words, is_slow): (&str, &str, bool), count: usize) -> PaperRow {
    let of = |quantity| scaling_by(found, kind, count, quantity);
    let rate = of(Quantity::BytesPerSecond);
    let each: Vec<f64> = rate.iter().map(|rate| rate / count as f64).collect();
    let cpu = match is_slow {
        true => PaperCell::words("with the load"),
        false => measured_cell(&cpu_percent(found, &of(Quantity::CoresBusy)), 1.0),
    };
    let cells = vec![
        measured_cell(&rate, MB),
        cpu,
        measured_cell(&each, MB),
        measured_cell(&of(Quantity::CpuSecondsPerGb), 1.0),
        measured_cell(&interrupts(found, kind, count), 1.0),
    ];
    PaperRow::here(format!("this machine, {}, {words}", plural(count)), cells)
}

/// A published ratio in a column of rates.
fn times(quantity: &str, cell: PaperCell) -> PaperCell {
    match cell.value {
        Some(value) if quantity == "gain" => PaperCell::words(format!("{value}x the other")),
        Some(_) => PaperCell::words("equal"),
        None => cell,
    }
}

/// Table of the required rate and of each number of volumes.
fn recording_table(found: &Reproduced<'_>, edition: &PublishedPaper) -> PaperTable {
    let required = edition.figures().iter().filter(|f| f.system == "ROMANIS" && f.quantity == "rate");
    let mut rows: Vec<PaperRow> = required
        .map(|figure| {
            let rate = cell(figure, PaperUnit::MegabytesPerSecond);
            let rate = PaperCell { note: Some("required".into()), ..rate };
            let cells = std::iter::once(rate).chain(std::iter::repeat_n(PaperCell::default(), 4)).collect();
            let name = format!("{}, {} ({})", figure.system, figure.condition, figure.place);
            PaperRow { name, is_here: false, cells, note: figure.note.clone() }
        })
        .collect();
    for place in places(found) {
        for rate in [CAMERA.rate(), FULL] {
            let label = recording(&place, rate);
            let labels = [("test", label.as_str())];
            let busy = found.values(&labels, "record", Quantity::CoresBusy);
            let cells = vec![
                found.figure(&labels, "record", Quantity::BytesPerSecond, MB),
                measured_cell(&found.values(&labels, "record", Quantity::Lost), 1.0),
                measured_cell(&found.values(&labels, "record", Quantity::CpuSecondsPerGb), 1.0),
                measured_cell(&cpu_percent(found, &busy), 1.0),
                measured_cell(&found.values(&labels, "read back", Quantity::BytesPerSecond), MB),
            ];
            rows.push(PaperRow::here(format!("this machine, {place}, {}", rate.0), cells));
        }
    }
    PaperTable {
        title: format!("{} sensors, each written to one volume, and read back by sensor", CAMERA.sensors),
        stands: "section II.C".into(),
        head: "recorded to".into(),
        columns: vec![
            PaperColumn::new("durable", "MB/s"),
            PaperColumn::new("events lost", ""),
            PaperColumn::new("CPU of the recorder", "s/GB"),
            PaperColumn::new("CPU with the source", "%"),
            PaperColumn::new("read back", "MB/s"),
        ],
        rows,
    }
}

/// Figure 3 (a) and (b), and CPU per amount of data, which the paper does not show.
fn curves(found: &Reproduced<'_>) -> Vec<PaperCurve> {
    let lost = "the curves of the paper are lost; according to its text, the rate rises almost linearly up \
                to at least 5 disks for all chips on the faster processor";
    let kinds = [
        (
            "Rate by number of disks",
            "figure 3 (a) and (c)",
            ("rate", "MB/s"),
            Quantity::BytesPerSecond,
            Some(lost),
        ),
        ("CPU by number of disks", "figure 3 (b)", ("CPU", "%"), Quantity::CoresBusy, Some(lost)),
        ("CPU per amount of data", "not in the paper", ("CPU", "s/GB"), Quantity::CpuSecondsPerGb, None),
    ];
    let drawn = kinds.map(|(title, stands, (y, unit), quantity, note)| {
        let point = |kind: &str, count: usize| {
            let values = scaling_by(found, kind, count, quantity);
            let value = match quantity {
                Quantity::CoresBusy => median(&cpu_percent(found, &values)),
                Quantity::BytesPerSecond => median(&values).map(|rate| rate / MB),
                _ => median(&values),
            };
            value.map(|value| (count as f64, value))
        };
        // The CPU of a machine with a load is that of the load.
        let shown = SCALING.iter().filter(|kind| !kind.3 || quantity != Quantity::CoresBusy);
        let series = shown.map(|(kind, words, _, _)| PaperSeries {
            name: (*words).to_owned(),
            is_here: true,
            points: (1..=count(found)).filter_map(|count| point(kind, count)).collect(),
        });
        let series: Vec<PaperSeries> = series.collect();
        PaperCurve {
            title: title.into(),
            stands: stands.into(),
            x: PaperColumn::new("disks", ""),
            y: PaperColumn::new(y, unit),
            is_log_x: false,
            series,
            note: note.map(str::to_owned),
        }
    });
    // A single point is no curve.
    drawn.into_iter().filter(|curve| curve.series.iter().any(|series| series.points.len() > 1)).collect()
}

#[cfg(test)]
#[path = "romanis_tests.rs"]
mod tests;
