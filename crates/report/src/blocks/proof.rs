//! Required and proven: rate, headroom, duration, loss and confidence.

use keepup_measure::sum::Sums;
use keepup_results::{FailedRate, LoadUnit, ResultSummary, SessionLoad, Soak, SteadyState};

use crate::format::{
    NOT_MEASURED, bytes, count, digits, megabytes_per_second, number, or_not_measured, plural, rate, rates,
    seconds,
};
use crate::page::{Block, Item};
use crate::table::{Cell, Table, Tone, left};

/// Total duration of all passes of a soak.
pub(super) fn soak_seconds(soak: &Soak) -> f64 {
    soak.seconds * f64::from(soak.passes)
}

pub(crate) fn block(summary: &ResultSummary) -> Block {
    let mut rows = vec![rate_row(summary), headroom_row(summary), knee_row(summary)];
    rows.extend(failed_row(summary));
    rows.extend([run_row(summary), loss_row(summary)]);
    rows.extend(summary.steady.as_ref().and_then(steady_row));
    rows.extend(summary.loads.iter().map(load_row));
    // The longest column is last, where it can wrap.
    let columns = vec![left(""), left("required"), left(""), left("proven")];
    Block::new("Required and proven", vec![Item::Table(Table { columns, rows })])
}

fn met_cell(yes: bool) -> Cell {
    if yes { Cell::toned("met", Tone::Good) } else { Cell::toned("not met", Tone::Bad) }
}

fn rate_row(summary: &ResultSummary) -> Vec<Cell> {
    let required = summary.required_bytes_per_second;
    let qualified = summary.qualified_bytes_per_second;
    let mark = qualified.map_or_else(|| "".into(), |proven| met_cell(proven >= required));
    vec!["rate".into(), rate(required).into(), mark, or_not_measured(qualified, rate).into()]
}

fn headroom_row(summary: &ResultSummary) -> Vec<Cell> {
    let wanted = summary.headroom_wanted;
    let times = |value: f64| format!("{}x the rate", digits(value));
    let mark = summary.headroom.map_or_else(|| "".into(), |proven| met_cell(proven >= wanted));
    vec!["headroom".into(), times(wanted).into(), mark, or_not_measured(summary.headroom, times).into()]
}

fn knee_row(summary: &ResultSummary) -> Vec<Cell> {
    let knee = summary.knee_bytes_per_second;
    // The next row has the lowest rate that failed, even if it passed more often.
    let interval = summary.knee_interval.filter(|_| summary.failed_above.is_none());
    let text = match (knee, interval.map(|interval| interval.upper_bytes_per_second)) {
        (Some(knee), Some(Some(upper))) => {
            let [knee, upper] = rates([knee, upper]);
            format!("{knee}; {upper} failed")
        }
        (_, Some(None)) if summary.trials.iter().all(|trial| trial.passed) => {
            format!("{}; no rate failed", or_not_measured(knee, rate))
        }
        (_, Some(None)) => {
            format!("{}; the limit of this machine was not found", or_not_measured(knee, rate))
        }
        _ => or_not_measured(knee, rate),
    };
    vec!["highest rate in trials".into(), "".into(), "".into(), text.into()]
}

/// A rate that failed and how: "1.61 GB/s: 51 events lost in 30 s". `rate` is the rate in the unit of the
/// sentence.
pub(super) fn failed(above: &FailedRate, rate: String) -> String {
    let time = seconds(above.seconds);
    let how = match above.lost_events {
        0 => format!("{} in {time}", above.condition),
        lost => format!("{} lost in {time}", plural(lost, "event")),
    };
    // A drain that falls behind states its rates in MB/s.
    let rate = if how.contains(" MB/s") { megabytes_per_second(above.bytes_per_second) } else { rate };
    format!("{rate}: {how}")
}

fn failed_row(summary: &ResultSummary) -> Option<Vec<Cell>> {
    let above = summary.failed_above.as_ref()?;
    let text = failed(above, rate(above.bytes_per_second));
    Some(vec!["lowest rate that failed".into(), "".into(), "".into(), text.into()])
}

/// Rate of the first and the last round before the search.
fn steady_row(steady: &SteadyState) -> Option<Vec<Cell>> {
    let (first, last) = (steady.bytes_per_second.first()?, steady.bytes_per_second.last()?);
    let state = if steady.reached { "steady" } else { "not steady" };
    let [first, last] = rates([*first, *last]);
    let text = format!("{state} after {}: {last}, at first {first}", bytes(steady.bytes));
    Some(vec!["write rate before the search".into(), "".into(), "".into(), text.into()])
}

fn run_row(summary: &ResultSummary) -> Vec<Cell> {
    let required = summary.required_run_seconds.map_or_else(|| "not stated".to_owned(), seconds);
    let Some(soak) = &summary.soak else {
        return vec!["continuous run".into(), required.into(), "".into(), NOT_MEASURED.into()];
    };
    let memory = soak.memory_bytes.filter(|memory| *memory > 0).map(|memory| {
        let times = soak.bytes as f64 / memory as f64;
        format!(" ({}x the memory)", digits(times))
    });
    let proven = format!(
        "{} of {}, {}{}",
        plural(u64::from(soak.passes), "pass"),
        seconds(soak.seconds),
        bytes(soak.bytes),
        memory.unwrap_or_default()
    );
    let shorter = summary.required_run_seconds.is_some_and(|required| soak.seconds < required);
    let mark = if shorter { Cell::toned("sample only", Tone::Doubtful) } else { "".into() };
    vec!["continuous run".into(), required.into(), mark, proven.into()]
}

/// Loss incidents that a soak without loss does not exclude, and whether it excludes one in every run.
fn incidents(soak: &Soak, run_seconds: Option<f64>) -> (String, bool) {
    let per_second = soak.upper_bound_loss_per_second;
    let Some(run) = run_seconds else {
        return (format!("; at 95 % fewer than {} incidents per second", digits(per_second)), true);
    };
    let in_run = per_second * run;
    let text = format!("; at 95 % fewer than {} incidents in {}", number(in_run.ceil() as u64), seconds(run));
    (text, in_run <= 1.0)
}

/// What an incident cost. A soak ends shortly after its first loss, so each that lost events is one incident.
fn incident_cost(summary: &ResultSummary) -> Option<String> {
    let lost: Vec<u64> = summary.soak_losses().collect();
    let mean = lost.iter().map(|events| *events as f64).float_sum() / lost.len() as f64;
    let soaks = plural(lost.len() as u64, "failed soak");
    (!lost.is_empty()).then(|| format!("; an incident cost {} events on average ({soaks})", digits(mean)))
}

fn loss_row(summary: &ResultSummary) -> Vec<Cell> {
    let lost = summary.ledger.lost;
    let (proven, mark) = if lost.events > 0 {
        (count(lost), met_cell(false))
    } else if summary.ledger.sent.events == 0 {
        (NOT_MEASURED.to_owned(), "".into())
    } else {
        let bound = summary.soak.map(|soak| incidents(&soak, summary.required_run_seconds));
        let is_covered = bound.as_ref().is_none_or(|(_, is_covered)| *is_covered);
        let mark = match is_covered {
            true => met_cell(true),
            false => Cell::toned("not excluded", Tone::Doubtful),
        };
        let bound = bound.map_or_else(String::new, |(text, _)| text);
        (format!("none{bound}{}", incident_cost(summary).unwrap_or_default()), mark)
    };
    vec!["loss".into(), "none".into(), mark, proven.into()]
}

/// Row of a background load during the run shown.
fn load_row(load: &SessionLoad) -> Vec<Cell> {
    let load = &load.shown;
    let amount = |value: f64| match load.unit {
        LoadUnit::BytesPerSecond => rate(value),
        LoadUnit::Cores => format!("{} cores", digits(value)),
    };
    let cores = load.cores().map_or_else(String::new, |cores| format!(", CPU {} cores", digits(cores)));
    let mark = match (load.achieved, load.fell_short) {
        (None, _) => "".into(),
        (Some(_), true) => Cell::toned("fell short", Tone::Doubtful),
        (Some(_), false) => Cell::toned("met", Tone::Good),
    };
    let proven = format!("{}{cores}", or_not_measured(load.achieved, amount));
    vec![format!("background load: {}", load.kind).into(), amount(load.asked).into(), mark, proven.into()]
}
