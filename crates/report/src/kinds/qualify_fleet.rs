//! Page of a qualification of a fleet: trials, recorders, limits, and the verdict, last on a terminal.

use keepup_results::{
    ClockOffset, FleetQualifySummary, FleetTrialResult, KneeInterval, QualifiedHost, Stored, Verdict,
};
use serde_json::json;

use super::common::{self, PageContent};
use crate::chart::{Axis, BAD, Chart, GOOD, Mark, Series, Symbol, TEXT, figure, legend, plot, rate_scale};
use crate::format::{NOT_MEASURED, bytes, digits, number, rate, rates, seconds, shorten};
use crate::page::{Block, Document, Fact, Headline, Item, VerdictLast};
use crate::table::{Cell, Table, Tone, left, right};

/// Longest name in a table.
const NAME_CHARACTERS_MAX: usize = 32;

/// Complete report.
pub(super) fn document(stored: &Stored, summary: &FleetQualifySummary) -> Document {
    let mut blocks = vec![Block::new("Required and held", vec![Item::Facts(figures(summary))])];
    blocks.push(with_chart(trials(summary), trials_chart(summary)));
    blocks.push(with_chart(hosts(summary), hosts_chart(summary)));
    blocks.extend([clocks(summary), control(summary)]);
    let content = PageContent {
        answer: Some((summary.verdict.to_string(), Tone::of(summary.verdict))),
        // The common page adds why it ended early.
        sentences: summary.verdict_reasons.clone(),
        at_a_glance: Some(Block::new("What was not tested", vec![untested(summary)])),
        blocks,
        omits_figures: true,
        ..PageContent::default()
    };
    common::document(stored, content)
}

/// Terminal page: everything, then the verdict.
pub(crate) fn verdict_last(summary: &FleetQualifySummary) -> VerdictLast {
    let mut blocks = vec![trials(summary), hosts(summary), clocks(summary), control(summary)];
    let problems = reasons(summary);
    // The reason of FIT repeats the verdict.
    if summary.verdict != Verdict::Fit && !problems.is_empty() {
        blocks.push(Block::new("Reasons", vec![Item::List(problems)]));
    }
    blocks.push(Block::new("Not tested", vec![untested(summary)]));
    // A failure before the first trial leaves tables without rows.
    blocks.iter_mut().for_each(|block| block.items.retain(|item| !item.is_empty()));
    blocks.retain(|block| !block.items.is_empty());
    let FleetQualifySummary { fleet, workload, streams, created, id, .. } = summary;
    VerdictLast {
        title: format!("{workload} on fleet {fleet}, {streams} streams, {created}, result {id}"),
        blocks,
        verdict: Headline {
            verdict: summary.verdict.to_string(),
            tone: Tone::of(summary.verdict),
            title: String::new(),
            items: vec![Item::Facts(figures(summary))],
        },
    }
}

fn untested(summary: &FleetQualifySummary) -> Item {
    match summary.limits.is_empty() {
        true => Item::Text("No limits of this test were recorded.".to_owned()),
        false => Item::List(summary.limits.clone()),
    }
}

/// Reasons of the verdict, and what ended the measurement early.
fn reasons(summary: &FleetQualifySummary) -> Vec<String> {
    summary.verdict_reasons.iter().chain(&summary.failure).cloned().collect()
}

/// Required rate, knee, qualified rate, lowest rate that failed, and the bottleneck.
fn figures(summary: &FleetQualifySummary) -> Vec<Fact> {
    let run = summary.required_run_seconds.map(|time| format!(" for {}", seconds(time))).unwrap_or_default();
    let mut facts = vec![Fact::new(
        "required",
        format!(
            "{}{run}, with a headroom of {}x",
            rate(summary.required_bytes_per_second),
            digits(summary.headroom_wanted)
        ),
    )];
    facts.extend(summary.knee.map(|knee| Fact::new("knee", knee_text(&knee))));
    if let (Some(qualified), Some(soak)) = (summary.qualified_bytes_per_second, &summary.soak) {
        let (time, stored) = (seconds(soak.seconds * f64::from(soak.passes)), bytes(soak.bytes));
        let times = summary.headroom().map_or_else(String::new, |times| format!(" ({}x)", digits(times)));
        let text = format!("{}{times}: a soak of {time} with {stored}", rate(qualified));
        facts.push(Fact::new("qualified", text));
    }
    facts.extend(summary.failed_above.as_ref().map(|failed| {
        Fact::new("failed", format!("{}: {}", rate(failed.bytes_per_second), failed.condition))
    }));
    facts.push(Fact::new("bottleneck", bottleneck(summary)));
    facts
}

fn bottleneck(summary: &FleetQualifySummary) -> String {
    summary
        .bottleneck
        .as_ref()
        .map_or_else(|| "not determined".to_owned(), |limit| format!("{}: {}", limit.stage, limit.evidence))
}

fn knee_text(knee: &KneeInterval) -> String {
    match knee.upper_bytes_per_second {
        None => format!("{} held", rate(knee.lower_bytes_per_second)),
        Some(upper) => {
            let [lower, upper] = rates([knee.lower_bytes_per_second, upper]);
            format!("{lower} held, {upper} failed")
        }
    }
}

fn trials(summary: &FleetQualifySummary) -> Block {
    let columns = vec![
        right("trial"),
        left("phase"),
        left("failed on"),
        right("requested"),
        right("recorded"),
        right("time"),
        right("lost"),
    ];
    let rows = (1..).zip(&summary.trials).map(|(number, trial)| trial_row(number, trial)).collect();
    Block::new("Trials", vec![Item::Table(Table { columns, rows })])
}

fn trial_row(place: usize, trial: &FleetTrialResult) -> Vec<Cell> {
    let mut failed = trial.parts.iter().filter(|part| part.failed.is_some()).map(|part| part.host.as_str());
    let first =
        shorten(failed.next().unwrap_or(if trial.passed { "-" } else { "source" }), NAME_CHARACTERS_MAX);
    let more = failed.count();
    let failed = if more > 0 { format!("{first} and {more} more") } else { first };
    let tone = if trial.passed { Tone::Plain } else { Tone::Bad };
    vec![
        place.to_string().into(),
        shorten(&trial.phase, NAME_CHARACTERS_MAX).into(),
        Cell::toned(failed, tone),
        trial.asked_bytes_per_second.map_or_else(|| "full speed".to_owned(), rate).into(),
        rate(trial.achieved_bytes_per_second).into(),
        seconds(trial.seconds).into(),
        Cell::toned(number(trial.lost_events), if trial.lost_events > 0 { Tone::Bad } else { Tone::Plain }),
    ]
}

fn hosts(summary: &FleetQualifySummary) -> Block {
    let row = |host: &QualifiedHost| -> Vec<Cell> {
        let alone = host.alone.map(|knee| rate(knee.lower_bytes_per_second));
        vec![
            name(host),
            host.source.as_str().into(),
            host.streams.to_string().into(),
            host.held_bytes_per_second.map_or_else(|| "-".to_owned(), rate).into(),
            alone.unwrap_or_else(|| "-".to_owned()).into(),
            host.cpu_seconds_per_gb.map_or_else(|| "-".to_owned(), digits).into(),
        ]
    };
    let columns = vec![
        left("recorder"),
        left("source"),
        right("streams"),
        right("held"),
        right("alone"),
        right("CPU, s/GB"),
    ];
    let failed = summary.hosts.iter().filter_map(|host| {
        let (why, stage) = (host.failed.as_ref()?, host.stage.as_deref().unwrap_or_default());
        Some(format!("{}: {why}; {stage}", shorten(&host.host, NAME_CHARACTERS_MAX)))
    });
    let table = Table { columns, rows: summary.hosts.iter().map(row).collect() };
    Block::new("Recorders", vec![Item::Table(table), Item::List(failed.collect())])
}

fn name(host: &QualifiedHost) -> Cell {
    shorten(&host.host, NAME_CHARACTERS_MAX).into()
}

fn clocks(summary: &FleetQualifySummary) -> Block {
    let offset =
        |clock: ClockOffset| format!("{:.2} ±{:.2}", clock.ns as f64 / 1e6, clock.error_ns as f64 / 1e6);
    let row = |host: &QualifiedHost| -> Vec<Cell> {
        let start = host.start_delay_seconds_max.map(|start_s| format!("{:+.2}", start_s * 1e3));
        vec![
            name(host),
            start.unwrap_or_else(|| "-".to_owned()).into(),
            host.clock.map_or_else(|| "-".to_owned(), offset).into(),
        ]
    };
    let columns = vec![left("recorder"), right("start delay, ms"), right("clock offset, ms")];
    let table = Table { columns, rows: summary.hosts.iter().map(row).collect() };
    Block::new("Start and clocks", vec![Item::Table(table)])
}

fn control(summary: &FleetQualifySummary) -> Block {
    let share = summary.control.share().map(|share| format!("{:.4} % of the payload", share * 100.0));
    let lost = summary.lost.iter().map(|lost| {
        format!("{} in trial {}: {}", shorten(&lost.host, NAME_CHARACTERS_MAX), lost.trial, lost.why)
    });
    let mut facts = vec![
        Fact::new("control traffic", share.unwrap_or_else(|| NOT_MEASURED.to_owned())),
        Fact::new("written", bytes(summary.bytes_written)),
    ];
    facts.extend(lost.map(|text| Fact::new("lost host", text)));
    Block::new("Network and volumes", vec![Item::Facts(facts)])
}

/// The block with its first table in a chart.
fn with_chart(mut block: Block, chart: Option<Chart>) -> Block {
    let place = block.items.iter().position(|item| matches!(item, Item::Table(_)));
    if let (Some(place), Some(chart)) = (place, chart) {
        block.items.insert(place, common::item(Chart { is_in_table: true, ..chart }));
    }
    block
}

/// Requested and received rate of each trial. Failed trials are hollow.
fn trials_chart(summary: &FleetQualifySummary) -> Option<Chart> {
    let trials = &summary.trials;
    let most = trials.iter().map(|trial| trial.asked_bytes_per_second.unwrap_or(0.0));
    let most = most.chain(trials.iter().map(|trial| trial.achieved_bytes_per_second));
    let required = summary.required_bytes_per_second;
    let unit = rate_scale(most.fold(required, f64::max));
    let bar = |trial: &FleetTrialResult| {
        let style = match trial.passed {
            true => json!({ "color": GOOD }),
            false => json!({ "color": "transparent", "borderColor": BAD, "borderWidth": 2 }),
        };
        // A trial without a schedule has no bar.
        let asked = trial.asked_bytes_per_second.unwrap_or(f64::NAN);
        json!({ "value": figure(unit.of(asked)), "itemStyle": style })
    };
    let dots = (0..)
        .zip(trials)
        .map(|(place, trial): (usize, _)| json!([place, figure(unit.of(trial.achieved_bytes_per_second))]));
    let series = [
        Series::new("requested", GOOD, Mark::Bars, trials.iter().map(bar).collect())
            .with_horizontal_line(unit.of(required), &format!("required {}", rate(required))),
        Series::new("received", TEXT, Mark::Dots(Symbol::Circle), dots.collect()),
    ];
    let names = (1..).zip(trials).map(|(n, trial): (usize, _)| format!("{n} {}", trial.phase)).collect();
    let columns = vec![right("trial"), left("phase"), right("requested"), right("received")];
    let row = |(n, trial): (usize, &FleetTrialResult)| -> Vec<Cell> {
        vec![
            n.to_string().into(),
            trial.phase.as_str().into(),
            trial.asked_bytes_per_second.map_or_else(|| "full speed".to_owned(), rate).into(),
            rate(trial.achieved_bytes_per_second).into(),
        ]
    };
    (!trials.is_empty()).then(|| Chart {
        title: format!("Rate of all recorders in each trial, {}", unit.unit),
        note: "Hollow bars: trials that failed. A trial without a bar ran at full speed.".into(),
        legend: legend(&series),
        table: Table { columns, rows: (1..).zip(trials).map(row).collect() },
        ..plot(
            &Axis::category("trial, in order", names),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            230,
        )
    })
}

/// Rate that each recorder held together with the others, and alone.
fn hosts_chart(summary: &FleetQualifySummary) -> Option<Chart> {
    let hosts = &summary.hosts;
    let held = |host: &QualifiedHost| host.held_bytes_per_second;
    let alone = |host: &QualifiedHost| host.alone.map(|knee| knee.lower_bytes_per_second);
    let all = hosts.iter().flat_map(|host| [held(host), alone(host)]).flatten();
    let unit = rate_scale(all.reduce(f64::max)?);
    let bars = hosts.iter().map(|host| figure(unit.of(held(host).unwrap_or(f64::NAN))));
    let dots = (0..)
        .zip(hosts)
        .filter_map(|(place, host): (usize, _)| Some(json!([place, figure(unit.of(alone(host)?))])));
    let mut series = vec![
        Series::new("held together", GOOD, Mark::Bars, bars.collect()),
        Series::new("knee alone", TEXT, Mark::Dots(Symbol::Diamond), dots.collect()),
    ];
    series.truncate(if hosts.iter().any(|host| host.alone.is_some()) { 2 } else { 1 });
    let text = |value: Option<f64>| Cell::from(value.map_or_else(|| "-".to_owned(), rate));
    let row = |host: &QualifiedHost| vec![host.host.as_str().into(), text(held(host)), text(alone(host))];
    let columns = vec![left("recorder"), right("held"), right("alone")];
    Some(Chart {
        title: format!("Rate of each recorder, {}", unit.unit),
        legend: legend(&series),
        table: Table { columns, rows: hosts.iter().map(row).collect() },
        ..plot(
            &Axis::category("recorder", hosts.iter().map(|host| host.host.clone()).collect()),
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &series,
            200,
        )
    })
}
