//! ROMANIS: acoustic camera with 508 sensors, each stored on one disk, 1.6 Gbit/s in total.
//!
//! Figure 3: rate and CPU by number of disks, with the Iometer settings of the paper. Recording: 508 streams
//! to 1 to N volumes without multiplexing, and read back by sensor, compared with one RAID 0.
use std::sync::LazyLock;

use keepup_measure::stats::median;
use keepup_model::papers::PaperUnit;
use keepup_results::{
    Headed, PaperAnswer, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow, PaperSeries, PaperTable,
    Quantity, RecordRun, Stored,
};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::error::ReproduceError;
use crate::measured::Reproduced;
use crate::published::{PublishedPaper, cell};
use crate::{PaperRequest, Reproduction, file, labelled, scaled, volumes};

const MB: f64 = 1e6;
/// Event size of a sensor, as in the tests of the paper.
const EVENT_BYTES: u64 = 2_000_000;
/// Events per sensor at full scale: 15 s of the camera.
const EVENTS_EACH: f64 = 3.0;
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
const FIGURE_3: &str = "figure 3";
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

    fn campaign(&self, request: &PaperRequest) -> Result<Table, ReproduceError> {
        let volumes = volumes(request)?;
        let mut tests = vec![labelled(FIGURE_3, &disks(&volumes, request.scale))];
        let counts = (1..=volumes.len()).map(|count| (plural(count), volumes[..count].to_vec()));
        let raid = request.raid.iter().map(|raid| (RAID.to_owned(), vec![raid.display().to_string().into()]));
        for (place, volumes) in counts.chain(raid) {
            for rate in [CAMERA.rate(), FULL] {
                let settings = sensors(volumes.clone(), rate.1, request.scale);
                tests.push(labelled(&label(&place, rate), &settings));
            }
        }
        Ok(file("The acoustic camera: parallel disks", 3, Table::new(), [("test", tests)]))
    }

    fn page(&self, found: &Reproduced<'_>) -> PaperPage {
        let edition = PublishedPaper::of(self.name());
        let mut page = found.new_page(&edition);
        page.tables = vec![scaling_table(found, &edition), recording_table(found, &edition)];
        page.curves = curves(found);
        page.findings = findings(found);
        page.answers = answers(found, &edition);
        page.limits.extend(limits(found));
        page
    }
}

/// Settings of figure 3: sequential writes of 2 MB, one at a time.
fn disks(volumes: &[Value], scale: f64) -> Vec<(&'static str, Value)> {
    let time = |seconds: f64| Value::from(format!("{:.0} ms", seconds * 1e3));
    vec![
        ("verb", "disk scale".into()),
        ("volume", Value::Array(volumes.to_vec())),
        ("outstanding", 1.into()),
        ("request", "2 MiB".into()),
        ("file", scaled(FILE_BYTES, scale, 2 << 20)),
        ("ramp", time(RAMP_SECONDS * scale)),
        ("run", time((RUN_SECONDS * scale).max(RUN_SECONDS_MIN))),
    ]
}

/// All sensors, each on one volume.
fn sensors(volumes: Vec<Value>, rate: &str, scale: f64) -> Vec<(&'static str, Value)> {
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
        ("volume", Value::Array(volumes)),
    ]
}

/// Number and size of events. Scaling reduces their number first, then their size, so that every sensor
/// sends.
fn amount(scale: f64) -> (u64, Value) {
    let each = EVENTS_EACH * scale;
    (CAMERA.sensors * each.round().max(1.0) as u64, scaled(EVENT_BYTES, each.min(1.0), 1000))
}

fn plural(count: usize) -> String {
    format!("{count} {}", if count == 1 { "volume" } else { "volumes" })
}

fn label(place: &str, rate: (&str, &str)) -> String {
    format!("{place}, {}", rate.0)
}

/// Number of volumes.
fn count(found: &Reproduced<'_>) -> usize {
    let has = |count: &usize| found.labels("test").contains(&label(&plural(*count), CAMERA.rate()));
    (1..).take_while(has).count()
}

fn has_raid(found: &Reproduced<'_>) -> bool {
    found.labels("test").contains(&label(RAID, CAMERA.rate()))
}

/// Recorded places: 1 to N volumes, and the RAID.
fn places(found: &Reproduced<'_>) -> Vec<String> {
    let raid = has_raid(found).then(|| RAID.to_owned());
    (1..=count(found)).map(plural).chain(raid).collect()
}

/// A figure of the writes to `count` volumes.
fn scaling(found: &Reproduced<'_>, count: usize, quantity: Quantity) -> Vec<f64> {
    found.values(&[("test", FIGURE_3)], &plural(count), quantity)
}

/// CPU of the whole machine in per cent of all cores.
fn cpu_percent(found: &Reproduced<'_>, busy: &[f64]) -> Vec<f64> {
    let cores = found.cores().unwrap_or(0) as f64;
    busy.iter().filter(|_| cores > 0.0).map(|busy| 100.0 * busy / cores).collect()
}

fn measured_cell(values: &[f64], unit: f64) -> PaperCell {
    let values: Vec<f64> = values.iter().map(|value| value / unit).collect();
    if values.is_empty() { PaperCell::words("not measured") } else { PaperCell::measured(&values) }
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
        let cells = cells.into_iter().chain([PaperCell::default(), PaperCell::default()]).collect();
        rows.push(PaperRow { name, is_here: false, cells, note: figure.note.clone() });
    }
    for count in 1..=count(found) {
        let busy = scaling(found, count, Quantity::CoresBusy);
        let rate = scaling(found, count, Quantity::BytesPerSecond);
        let each: Vec<f64> = rate.iter().map(|rate| rate / count as f64).collect();
        let cells = vec![
            measured_cell(&rate, MB),
            measured_cell(&cpu_percent(found, &busy), 1.0),
            measured_cell(&each, MB),
            measured_cell(&scaling(found, count, Quantity::CpuSecondsPerGb), 1.0),
        ];
        rows.push(PaperRow {
            name: format!("this machine, {}", plural(count)),
            is_here: true,
            cells,
            note: None,
        });
    }
    PaperTable {
        title: "Sequential writes of 2 MB, one at a time on each disk".into(),
        stands: FIGURE_3.into(),
        head: "disks".into(),
        columns: vec![
            PaperColumn::new("rate", "MB/s"),
            PaperColumn::new("CPU", "%"),
            PaperColumn::new("per disk", "MB/s"),
            PaperColumn::new("CPU of the writer", "s/GB"),
        ],
        rows,
    }
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
            let label = label(&place, rate);
            let labels = [("test", label.as_str())];
            let busy = found.values(&labels, "record", Quantity::CoresBusy);
            let cells = vec![
                found.figure(&labels, "record", Quantity::BytesPerSecond, MB),
                measured_cell(&found.values(&labels, "record", Quantity::Lost), 1.0),
                measured_cell(&found.values(&labels, "record", Quantity::CpuSecondsPerGb), 1.0),
                measured_cell(&cpu_percent(found, &busy), 1.0),
                measured_cell(&found.values(&labels, "read back", Quantity::BytesPerSecond), MB),
            ];
            rows.push(PaperRow { name: format!("this machine, {label}"), is_here: true, cells, note: None });
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
        ("Rate by number of disks", "figure 3 (a)", ("rate", "MB/s"), Quantity::BytesPerSecond, Some(lost)),
        ("CPU by number of disks", "figure 3 (b)", ("CPU", "%"), Quantity::CoresBusy, Some(lost)),
        ("CPU per amount of data", "not in the paper", ("CPU", "s/GB"), Quantity::CpuSecondsPerGb, None),
    ];
    let drawn = kinds.map(|(title, stands, (y, unit), quantity, note)| {
        let point = |count: usize| {
            let values = scaling(found, count, quantity);
            let value = match quantity {
                Quantity::CoresBusy => median(&cpu_percent(found, &values)),
                Quantity::BytesPerSecond => median(&values).map(|rate| rate / MB),
                _ => median(&values),
            };
            value.map(|value| (count as f64, value))
        };
        let points: Vec<(f64, f64)> = (1..=count(found)).filter_map(point).collect();
        PaperCurve {
            title: title.into(),
            stands: stands.into(),
            x: PaperColumn::new("disks", ""),
            y: PaperColumn::new(y, unit),
            is_log_x: false,
            series: vec![PaperSeries { name: "this machine".into(), is_here: true, points }],
            note: note.map(str::to_owned),
        }
    });
    // A single point is no curve.
    drawn.into_iter().filter(|curve| curve.series.iter().any(|series| series.points.len() > 1)).collect()
}

/// Knee: largest number of volumes with linear scaling. `None` without a rate of one volume.
fn linear_up_to(found: &Reproduced<'_>) -> Option<usize> {
    let one = scaling(found, 1, Quantity::BytesPerSecond).into_iter().reduce(f64::min)?;
    let falls_short = |count: &usize| {
        let most = scaling(found, *count, Quantity::BytesPerSecond).into_iter().reduce(f64::max);
        most.is_none_or(|most| most < LINEAR * *count as f64 * one)
    };
    let knee = (2..=count(found)).find(falls_short);
    Some(knee.map_or(count(found), |knee| knee - 1))
}

/// The runs of a place at a rate.
fn runs<'f>(found: &'f Reproduced<'_>, place: &str, rate: (&str, &str)) -> Vec<&'f RecordRun> {
    let label = label(place, rate);
    let results = found.cells(&[("test", label.as_str())]).flat_map(|cell| &cell.results).collect::<Vec<_>>();
    let records = results.into_iter().filter_map(|result| match &result.summary {
        Stored::Record(summary) => Some(&summary.runs),
        _ => None,
    });
    records.flatten().collect()
}

/// Whether the rate of the camera was recorded without loss in every run; `None` without runs.
fn keeps(found: &Reproduced<'_>, place: &str) -> Option<bool> {
    let runs = runs(found, place, CAMERA.rate());
    let is_kept =
        |run: &&RecordRun| run.is_whole() && run.achieved_bytes_per_second >= KEPT * CAMERA.mb_per_s * MB;
    (!runs.is_empty()).then(|| runs.iter().all(is_kept))
}

/// Median, minimum and maximum of a figure of a place at full speed.
fn fastest(found: &Reproduced<'_>, place: &str, what: &str, quantity: Quantity) -> Option<(f64, f64, f64)> {
    let label = label(place, FULL);
    let cell = PaperCell::measured(&found.values(&[("test", label.as_str())], what, quantity));
    Some((cell.value?, cell.lowest?, cell.highest?))
}

/// Ratio of two figures, if their ranges do not overlap.
fn ratio_text(ours: (f64, f64, f64), other: (f64, f64, f64)) -> String {
    match ours.2 < other.1 || ours.1 > other.2 {
        true => format!("{:.2}x", ours.0 / other.0),
        false => "1x (no significant difference)".to_owned(),
    }
}

fn findings(found: &Reproduced<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let count = count(found);
    if let Some(one) = median(&scaling(found, 1, Quantity::BytesPerSecond)) {
        findings.push(format!("One volume: {:.0} MB/s with writes of 2 MB, one at a time.", one / MB));
    }
    if let (Some(knee), true, None) = (linear_up_to(found), count > 1, shared(found)) {
        findings.push(match knee == count {
            true => format!("The rate scales linearly up to all {count} volumes; the knee was not reached."),
            false => format!(
                "The rate scales linearly up to {knee}: {} reach less than {:.0} % of {}x one.",
                plural(knee + 1),
                100.0 * LINEAR,
                knee + 1
            ),
        });
    }
    for place in places(found) {
        let Some((rate, lowest, _)) = fastest(found, &place, "record", Quantity::BytesPerSecond) else {
            continue;
        };
        let back = fastest(found, &place, "read back", Quantity::BytesPerSecond);
        let back =
            back.map_or_else(String::new, |back| format!(" Read back by sensor: {:.0} MB/s.", back.0 / MB));
        findings.push(format!(
            "{} sensors to {place}: {:.0} MB/s, at least {:.1}x the camera's {}.{back}",
            CAMERA.sensors,
            rate / MB,
            lowest / MB / CAMERA.mb_per_s,
            CAMERA.flag
        ));
    }
    findings.extend(raid_finding(found));
    findings
}

/// Comparison of the RAID with single volumes.
fn raid_finding(found: &Reproduced<'_>) -> Option<String> {
    let all = plural(count(found));
    let figures = [
        ("recording rate", "record", Quantity::BytesPerSecond),
        ("recorder CPU per GB", "record", Quantity::CpuSecondsPerGb),
        ("read-back rate", "read back", Quantity::BytesPerSecond),
    ];
    let ratios: Option<Vec<String>> = figures
        .into_iter()
        .map(|(words, what, quantity)| {
            let raid = fastest(found, RAID, what, quantity)?;
            Some(format!("{words} {}", ratio_text(raid, fastest(found, &all, what, quantity)?)))
        })
        .collect();
    Some(format!("RAID 0 compared with {all} at full speed: {}.", ratios?.join(", ")))
}

fn answers(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperAnswer> {
    let of = |condition, quantity, unit| edition.text("F6", ["ROMANIS", condition, quantity], unit);
    vec![
        PaperAnswer {
            question: "Does the rate scale with the number of disks?".into(),
            published: "Almost linearly up to at least 5 disks; then the loop or a slow processor limits it."
                .into(),
            here: more_disks(found),
        },
        PaperAnswer {
            question: format!(
                "Can {} sensors, each stored on one disk without multiplexing or RAID, sustain {} Gbit/s?",
                CAMERA.sensors,
                of("all of it", "rate", PaperUnit::GigabitsPerSecond)
            ),
            published: format!(
                "Designed for it, with {} loops of {} Mbit/s; the total rate is not stated.",
                of("as built", "loops", PaperUnit::Items),
                of("each loop", "rate", PaperUnit::MegabitsPerSecond)
            ),
            here: camera(found),
        },
        PaperAnswer {
            question: "How does one RAID 0 over the same disks compare?".into(),
            published: "Avoided because of the cost of re-assembly; not measured.".into(),
            here: match has_raid(found) {
                true => raid_finding(found).unwrap_or_else(|| "not measured".into()),
                false => "Unknown: no directory on a RAID 0 was given (--raid DIR).".into(),
            },
        },
        PaperAnswer {
            question: "How much CPU is left for the FFT?".into(),
            published: "None with the TL chip and the slow processor above 4 disks; some with the ISP chip."
                .into(),
            here: processors(found),
        },
    ]
}

fn more_disks(found: &Reproduced<'_>) -> String {
    let (count, shared) = (count(found), shared(found));
    match linear_up_to(found) {
        None => "not measured".into(),
        Some(_) if count < 2 => "Unknown with one volume (use --volume DIR once for each disk).".into(),
        Some(_) if shared.is_some() => {
            let rates =
                [1, count].map(|n| median(&scaling(found, n, Quantity::BytesPerSecond)).unwrap_or(0.0) / MB);
            format!(
                "Unknown: volumes share a disk. It reaches {:.0} MB/s with one volume, {:.0} MB/s with \
                 {count}.",
                rates[0], rates[1]
            )
        }
        Some(knee) if knee == count => format!("Yes, up to all {count} given."),
        Some(knee) => format!("Up to {knee} of {count}."),
    }
}

fn camera(found: &Reproduced<'_>) -> String {
    let kept: Vec<(usize, bool)> =
        (1..=count(found)).filter_map(|n| Some((n, keeps(found, &plural(n))?))).collect();
    let Some(fewest) = kept.iter().find(|(_, kept)| *kept).map(|(n, _)| *n) else {
        return if kept.is_empty() {
            "not measured".into()
        } else {
            "No, with none of the numbers of volumes.".into()
        };
    };
    let most = fastest(found, &plural(fewest), "record", Quantity::BytesPerSecond);
    let most = most.map_or_else(String::new, |most| {
        format!(" At full speed: {:.1}x that rate.", most.0 / MB / CAMERA.mb_per_s)
    });
    format!("Yes, with {}: {} recorded without loss in every run.{most}", plural(fewest), CAMERA.flag)
}

/// CPU at the camera's rate on all volumes.
fn processors(found: &Reproduced<'_>) -> String {
    let place = plural(count(found));
    let label = label(&place, CAMERA.rate());
    let labels = [("test", label.as_str())];
    let each = median(&found.values(&labels, "record", Quantity::CpuSecondsPerGb));
    let busy = median(&found.values(&labels, "record", Quantity::CoresBusy));
    match (each, busy, found.cores()) {
        (Some(each), Some(busy), Some(cores)) => format!(
            "At {} on {place} the recorder uses {:.2} of {cores} cores; with the simulated sensors, \
             {busy:.2} are busy and {:.2} are left.",
            CAMERA.flag,
            each * CAMERA.mb_per_s / 1e3,
            (cores as f64 - busy).max(0.0)
        ),
        _ => "not measured".into(),
    }
}

/// Disk with more than one volume, from the environment record of the writes.
fn shared(found: &Reproduced<'_>) -> Option<String> {
    let cell = found.cells(&[("test", FIGURE_3)]).next()?;
    let environment = cell.results.first()?.summary.head().environment;
    let volumes = environment.get("volumes").and_then(Json::as_array)?;
    let disks = volumes.iter().filter_map(|volume| volume.get("disks").and_then(Json::as_object));
    let mut names: Vec<&String> = disks.flat_map(|disks| disks.keys()).collect();
    names.sort();
    let twice: Vec<&str> =
        names.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].as_str()).collect();
    twice.first().map(|name| (*name).to_owned())
}

fn limits(found: &Reproduced<'_>) -> Vec<String> {
    let mut limits = vec![
        format!(
            "figure 3 was measured for {:.1} s after {:.1} s of warm-up (paper: 60 s and 10 s): a disk \
             cache may not have been full",
            (RUN_SECONDS * found.scale()).max(RUN_SECONDS_MIN),
            RAMP_SECONDS * found.scale()
        ),
        "the simulated sensors ran on this machine over loopback and used its CPU; there were no Fibre \
         Channel loops, and one machine replaces the 54 computers of the paper"
            .to_owned(),
    ];
    if EVENTS_EACH * found.scale() < 1.0 {
        limits.push("each sensor sent one event of less than 2 MB".to_owned());
    }
    if let Some(disk) = shared(found) {
        limits.push(format!(
            "volumes are on one disk ({disk}) and share its rate: scaling over disks was not measured"
        ));
    }
    match has_raid(found) {
        true => limits
            .push("--raid was assumed to be on a RAID 0 of the same disks; this was not checked".to_owned()),
        false => limits.push("no RAID 0 was tested".to_owned()),
    }
    limits
}

#[cfg(test)]
#[path = "romanis_tests.rs"]
mod tests;
