//! How many hosts a paper's detector needs: 1 to M recorders of a fleet, measured and predicted.
//!
//! Each cell is `keepup qualify --fleet --recorders N`. The model is fitted to the measured rate of one
//! recorder, and to what the recorders share if a measurement names it; every other number is predicted.
//! A number of hosts beyond the measured ones is marked as extrapolated.
mod answer;

use keepup_measure::stats::median;
use keepup_model::{MeasuredRate, Recorders};
use keepup_plan::builtin;
use keepup_results::format::plural;
use keepup_results::{
    FleetBottleneck, FleetQualifySummary, PaperCell, PaperColumn, PaperCurve, PaperPage, PaperRow,
    PaperSeries, PaperTable, Stored,
};
use toml::{Table, Value};

use crate::measured::{Reproduced, measured};
use crate::published::PublishedPaper;
use crate::{FleetRequest, PaperRequest, file, labelled, scaled};

const MB: f64 = 1e6;
/// Axis with the number of recorders.
const AXIS: &str = "recorders";
/// Soak at full scale and the shortest one, seconds.
const SOAK_SECONDS: f64 = 60.0;
const SOAK_SECONDS_MIN: f64 = 2.0;
/// Limit of bytes written by each cell at full scale.
const WRITE_BYTES: u64 = 400_000_000_000;
/// Difference of two searches on the same hosts, relative. The bounds of a measured rate are at least so
/// far from it: a single run knows only what held and what failed.
const SCATTER: f64 = 0.05;
/// Most numbers of recorders in a chart beyond the measured ones.
const DRAWN_MAX: u32 = 64;

/// The question of a paper.
pub(crate) struct Question<'a> {
    /// Name of the detector's built-in profile.
    pub(crate) profile: &'a str,
    /// How many hosts, as asked for the paper.
    pub(crate) question: String,
    /// Answer of the paper.
    pub(crate) published: String,
    /// Place in the paper.
    pub(crate) stands: &'a str,
}

impl Question<'_> {
    /// Required rate, bytes per second, and headroom; none for an unknown profile.
    pub(super) fn required(&self) -> Option<(f64, f64)> {
        let profile = builtin(self.profile).ok()?;
        Some((profile.required_bytes_per_second(), profile.headroom))
    }
}

/// Streams of a cell.
pub(crate) enum Streams {
    /// A fixed number.
    Fixed(u32),
    /// One for each recorder.
    Each,
}

/// Campaign of 1 to M recorders with more settings of all cells.
pub(crate) fn campaign(
    title: &str,
    request: &PaperRequest,
    fleet: &FleetRequest,
    (profile, streams, more): (&str, &Streams, Vec<(&str, Value)>),
) -> Table {
    let soak = (SOAK_SECONDS * request.scale).max(SOAK_SECONDS_MIN);
    let mut run = Table::new();
    run.insert("verb".into(), "qualify".into());
    run.insert("args".into(), profile.into());
    run.insert("fleet".into(), fleet.file.display().to_string().into());
    run.insert("quick".into(), (request.scale < 1.0).into());
    run.insert("soak".into(), format!("{:.0} ms", soak * 1e3).into());
    run.insert("max_write".into(), scaled(WRITE_BYTES, request.scale, 1 << 20));
    run.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let cell = |count: u32| {
        let each = fleet.each && count == fleet.recorders && count > 1;
        let streams = match streams {
            Streams::Fixed(streams) => *streams,
            Streams::Each => count,
        };
        let number = |number: u32| Value::from(i64::from(number));
        let settings = [("recorders", number(count)), ("streams", number(streams)), ("each", each.into())];
        labelled(&count.to_string(), &settings)
    };
    file(title, 1, run, [(AXIS, (1..=fleet.recorders).map(cell).collect())])
}

/// Whether the campaign measured a fleet.
pub(crate) fn is_fleet(found: &Reproduced<'_>) -> bool {
    !found.labels(AXIS).is_empty()
}

/// Results of a number of recorders, of runs that tested all of them.
pub(super) struct Measured<'f> {
    pub(super) recorders: u32,
    pub(super) results: Vec<&'f FleetQualifySummary>,
}

impl Measured<'_> {
    /// Qualified rates, bytes per second; none if a run has none.
    pub(super) fn qualified(&self) -> Option<Vec<f64>> {
        let rates = self.results.iter().map(|result| result.qualified_bytes_per_second);
        rates.collect::<Option<Vec<f64>>>().filter(|rates| !rates.is_empty())
    }

    /// Lowest rates that failed because of the machines, bytes per second.
    fn failed(&self) -> Vec<f64> {
        self.results
            .iter()
            .filter_map(|result| Some(result.failed_above.as_ref()?.bytes_per_second))
            .collect()
    }

    /// Measured rate with its bounds: the lowest that held and the highest that failed, or the scatter of
    /// searches if that is more.
    pub(super) fn rate(&self) -> Option<MeasuredRate> {
        let qualified = self.qualified()?;
        let value = median(&qualified)?;
        let low = qualified.iter().copied().fold(value * (1.0 - SCATTER), f64::min);
        let high = qualified.iter().copied().chain(self.failed()).fold(value * (1.0 + SCATTER), f64::max);
        Some(MeasuredRate { value, low, high })
    }

    /// What limits the rate, in the last run.
    fn limit(&self) -> Option<&str> {
        Some(self.results.last()?.bottleneck.as_ref()?.stage.as_str())
    }

    /// Whether every run names a limit that the recorders share.
    pub(super) fn is_shared(&self) -> bool {
        let is_shared = |result: &&FleetQualifySummary| {
            result.bottleneck.as_ref().is_some_and(|limit| limit.stage == FleetBottleneck::SHARED)
        };
        !self.results.is_empty() && self.results.iter().all(is_shared)
    }

    /// Whether a source was too slow in a run, so that nothing is known about the recorders above its rate.
    pub(super) fn is_source_bound(&self) -> bool {
        let is_source = |limit: &FleetBottleneck| limit.stage.starts_with("source ");
        self.results.iter().filter_map(|result| result.bottleneck.as_ref()).any(is_source)
    }

    /// Streams of the detector.
    fn streams(&self) -> Option<u32> {
        self.results.first().map(|result| result.streams)
    }
}

/// Why a run does not count as one of so many recorders; none if it tested all of them.
fn incomplete(result: &FleetQualifySummary, recorders: u32) -> Option<String> {
    let lost: Vec<&str> = result.lost.iter().map(|lost| lost.host.as_str()).collect();
    match lost.as_slice() {
        [] if result.hosts.len() == recorders as usize => None,
        [] => Some(format!("it tested {}", plural(result.hosts.len() as u64, "recorder"))),
        [host] => Some(format!("{host} was lost")),
        [host, ..] => Some(format!("{} hosts were lost, {host} first", lost.len())),
    }
}

/// Measurements and model.
pub(super) struct Fleet<'f> {
    /// Name of the fleet; empty without results.
    name: String,
    pub(super) measured: Vec<Measured<'f>>,
    /// Fitted to one recorder; none if it was not measured.
    pub(super) model: Option<Recorders>,
    /// Number of recorders whose common limit the model uses.
    pub(super) shared_at: Option<u32>,
    /// Runs that are not counted, one sentence each.
    pub(super) not_counted: Vec<String>,
}

impl<'f> Fleet<'f> {
    pub(super) fn of(found: &'f Reproduced<'_>, streams: &Streams) -> Self {
        let (mut measured, mut not_counted, mut name) = (Vec::new(), Vec::new(), "");
        for label in found.labels(AXIS) {
            let Ok(recorders) = label.parse() else { continue };
            let mut counted = Vec::new();
            for result in results(found, label) {
                name = if name.is_empty() { &result.fleet } else { name };
                match incomplete(result, recorders) {
                    None => counted.push(result),
                    Some(why) => {
                        let cell = plural(u64::from(recorders), "recorder");
                        not_counted.push(format!("run {} of {cell} is not counted: {why}", result.id));
                    }
                }
            }
            measured.push(Measured { recorders, results: counted });
        }
        let shared = measured.iter().filter(|of| of.recorders > 1 && of.is_shared());
        let shared = shared.filter_map(|of| Some((of.recorders, of.rate()?)));
        let shared = shared.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let one = measured.iter().find(|of| of.recorders == 1).and_then(|of| of.rate());
        let model = one.map(|one| Recorders {
            one,
            shared: shared.map(|(_, rate)| rate),
            streams: match streams {
                Streams::Fixed(streams) => Some(*streams),
                Streams::Each => None,
            },
            from: "qualification of one recorder".to_owned(),
        });
        Self { name: name.to_owned(), measured, model, shared_at: shared.map(|(at, _)| at), not_counted }
    }

    /// Largest number of recorders of a cell.
    fn recorders_max(&self) -> u32 {
        self.measured.iter().map(|of| of.recorders).max().unwrap_or(0)
    }

    /// Predicted rate of so many recorders.
    pub(super) fn predicted(&self, recorders: u32) -> Option<MeasuredRate> {
        self.model.as_ref()?.predict(recorders).ok()
    }

    /// Fewest recorders that the model needs for `wanted` bytes per second.
    pub(super) fn enough(&self, wanted: f64) -> Option<u32> {
        self.model.as_ref()?.enough(wanted).ok()?
    }
}

/// Results of the cells with this number of recorders.
fn results<'f>(found: &'f Reproduced<'_>, label: &str) -> impl Iterator<Item = &'f FleetQualifySummary> {
    let cells: Vec<_> = found.cells(&[(AXIS, label)]).collect();
    cells.into_iter().flat_map(|cell| &cell.results).filter_map(|result| match &result.summary {
        Stored::QualifyFleet(summary) => Some(&**summary),
        _ => None,
    })
}

/// Page with the measured and predicted numbers of hosts.
pub(crate) fn page(
    found: &Reproduced<'_>,
    edition: &PublishedPaper,
    question: &Question<'_>,
    streams: Streams,
) -> PaperPage {
    let fleet = Fleet::of(found, &streams);
    let mut page = found.new_page(edition);
    let most = plural(u64::from(fleet.recorders_max()), "recorder");
    page.machine = format!("fleet {}, up to {most}", fleet.name);
    page.fleet = Some(fleet.name.clone());
    page.tables = vec![rates(&fleet, question), answer::table(&fleet, question)];
    page.curves = curve(&fleet, question).into_iter().collect();
    page.answers = vec![answer::answer(&fleet, question)];
    page.findings = answer::findings(&fleet);
    page.limits.extend(answer::limits(&fleet));
    page
}

/// Measured rate of each number of recorders beside the predicted one.
fn rates(fleet: &Fleet<'_>, question: &Question<'_>) -> PaperTable {
    let in_mb = |rates: &[f64]| rates.iter().map(|rate| rate / MB).collect::<Vec<_>>();
    let row = |of: &Measured<'_>| {
        let predicted = fleet.predicted(of.recorders);
        let ratio = of.rate().zip(predicted).map(|(is, should)| is.value / should.value);
        let is_fitted = of.recorders == 1 || fleet.shared_at == Some(of.recorders);
        let cells = vec![
            of.qualified().map_or_else(|| measured(&[]), |rates| measured(&in_mb(&rates))),
            measured(&in_mb(&of.failed())),
            predicted.map_or_else(PaperCell::default, |rate| PaperCell {
                value: Some(rate.value / MB),
                lowest: Some(rate.low / MB),
                highest: Some(rate.high / MB),
                runs: 0,
                note: is_fitted.then(|| "fitted".to_owned()),
            }),
            match (ratio, is_fitted) {
                (Some(ratio), false) => PaperCell::published(ratio),
                _ => PaperCell::default(),
            },
            of.limit().map_or_else(PaperCell::default, PaperCell::words),
        ];
        let streams = of.streams().map(|streams| format!(", {streams} streams")).unwrap_or_default();
        PaperRow::here(format!("{}{streams}", plural(u64::from(of.recorders), "recorder")), cells)
    };
    PaperTable {
        title: format!("Rate of {} by number of recorders, measured and predicted", question.profile),
        stands: question.stands.into(),
        head: "recorders".into(),
        columns: vec![
            PaperColumn::new("qualified", "MB/s"),
            PaperColumn::new("failed", "MB/s"),
            PaperColumn::new("model", "MB/s"),
            PaperColumn::new("measured / model", ""),
            PaperColumn::new("limit", ""),
        ],
        rows: fleet.measured.iter().map(row).collect(),
    }
}

/// Both rates over the number of recorders, up to the number that is enough.
fn curve(fleet: &Fleet<'_>, question: &Question<'_>) -> Option<PaperCurve> {
    let measured = fleet.measured.iter();
    let points = measured.filter_map(|of| Some((f64::from(of.recorders), of.rate()?.value / MB)));
    let points: Vec<(f64, f64)> = points.collect();
    let (required, headroom) = question.required()?;
    fleet.model.as_ref()?;
    let enough = fleet.enough(required * headroom).unwrap_or(0).min(DRAWN_MAX);
    let last = fleet.recorders_max().max(enough).max(2);
    let predicted = (1..=last).filter_map(|n| Some((f64::from(n), fleet.predicted(n)?.value / MB)));
    let series = |name: &str, is_here: bool, points: Vec<(f64, f64)>| PaperSeries {
        name: name.to_owned(),
        is_here,
        points,
    };
    let all = vec![
        series("measured", true, points),
        series("model", false, predicted.collect()),
        series("required", false, [1.0, f64::from(last)].map(|n| (n, required / MB)).into()),
    ];
    Some(PaperCurve {
        title: "Rate by number of recorders".into(),
        stands: question.stands.into(),
        x: PaperColumn::new("recorders", ""),
        y: PaperColumn::new("rate", "MB/s"),
        is_log_x: false,
        series: all,
        note: Some("dashed: the model, fitted to one recorder, and the required rate".to_owned()),
    })
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
