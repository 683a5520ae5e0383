//! Page of a qualification, with charts.

use keepup_results::{Count, LedgerSummary, ResultSummary, TrialResult};
use serde_json::json;

use crate::blocks;
use crate::chart::{
    Axis, BAD, Chart, Dash, FAINT, GOOD, LabelPosition, LegendEntry, Mark, Series, Shape, Symbol, TEXT,
    colour, figure, legend, plot, rate_scale, round_end,
};
use crate::format::{digits, number, rate};
use crate::history::History;
use crate::kinds::timeline;
use crate::page::{Block, Document, Item, Page};
use crate::table::{Table, left, right};

/// Complete report of a qualification.
pub(crate) fn document(summary: &ResultSummary, history: &History) -> Document {
    let untested = match summary.limits.is_empty() {
        true => Item::Text("No limits of this test were recorded.".to_owned()),
        false => Item::List(summary.limits.clone()),
    };
    let limit = blocks::bottleneck(summary.bottleneck.as_ref());
    let untested = Block::new("What was not tested", vec![untested]);
    let mut staircase = blocks::staircase(&summary.trials);
    move_table_into(&mut staircase, trials(summary));
    let mut comparison = blocks::comparison(summary);
    move_table_into(&mut comparison, ceilings(summary));
    let mut proof = blocks::proof(summary);
    proof.items.extend(strip(summary).map(item));
    let mut ledger = blocks::ledger(&summary.ledger);
    ledger.items.extend(losses(&summary.ledger).map(item));
    let mut through_time = Vec::new();
    through_time.extend(history.incomplete.clone().map(Item::Text));
    let pool = summary.plan.get("pool_bytes").and_then(serde_json::Value::as_f64);
    through_time.extend(timeline::charts(history, pool).into_iter().map(item));
    if !history.notes.is_empty() {
        through_time.push(Item::List(history.notes.clone()));
    }
    proof.is_side_by_side = true;
    let mut all = vec![proof, comparison, staircase];
    if !through_time.is_empty() {
        all.push(Block::new("Over time", through_time));
    }
    let mut repeat = blocks::limits(summary);
    // What was not tested is at the top already.
    repeat.items.retain(|item| matches!(item, Item::Facts(_)));
    repeat.title = "How to repeat".to_owned();
    all.extend([ledger, blocks::cost(summary), repeat]);
    Document {
        kind: "qualification".to_owned(),
        page: Page { headline: blocks::headline(summary), blocks: all },
        glance: vec![limit, untested],
        records: vec![
            ("Environment of the measurement", summary.environment.clone()),
            ("Plan, as it was run", summary.plan.clone()),
        ],
    }
}

fn item(chart: Chart) -> Item {
    Item::Chart(Box::new(chart))
}

/// Replaces the first table of a block by a chart that contains the table.
fn move_table_into(block: &mut Block, chart: Option<Chart>) {
    let Some(mut chart) = chart else { return };
    let place = block.items.iter().position(|item| matches!(item, Item::Table(_)));
    let Some(place) = place else { return };
    if let Item::Table(table) = &mut block.items[place] {
        chart.table = std::mem::take(table);
    }
    block.items[place] = item(chart);
}

/// Requested and durable rate of every trial. Failed trials are hollow and crossed.
fn trials(summary: &ResultSummary) -> Option<Chart> {
    let trials = &summary.trials;
    let most =
        trials.iter().map(|t| t.asked_bytes_per_second.max(t.durable_bytes_per_second)).fold(0.0, f64::max);
    let most = most.max(summary.required_bytes_per_second);
    let unit = rate_scale(most);
    let asked = trials.iter().map(|trial| {
        // A trial without a schedule has no requested rate. What it reached must not fill the bar.
        let is_asked = !trial.is_unthrottled() && trial.asked_bytes_per_second > 0.0;
        let rate = if is_asked { trial.asked_bytes_per_second } else { f64::NAN };
        match trial.passed {
            true => json!({ "value": figure(unit.of(rate)), "itemStyle": { "color": GOOD } }),
            false => json!({
                "value": figure(unit.of(rate)),
                "itemStyle": { "color": "transparent", "borderColor": BAD, "borderWidth": 2 },
                "label": { "show": trial.lost_events > 0,
                    "formatter": format!("{} lost", number(trial.lost_events)),
                    "position": "top", "color": BAD, "fontSize": 11 },
            }),
        }
    });
    let dots = |passed: bool| {
        let each = (0..).zip(trials).filter(move |(_, trial)| trial.passed == passed);
        each.map(move |(place, trial): (usize, &TrialResult)| {
            json!([place, figure(unit.of(trial.durable_bytes_per_second))])
        })
        .collect::<Vec<_>>()
    };
    let required = format!("required {}", rate(summary.required_bytes_per_second));
    let series = [
        Series::new("asked", GOOD, Mark::Bars, asked.collect())
            .with_horizontal_line(unit.of(summary.required_bytes_per_second), ""),
        Series::new("durable, passed", TEXT, Mark::Dots(Symbol::Circle), dots(true)),
        Series::new("durable, failed", BAD, Mark::Dots(Symbol::Cross), dots(false)),
    ];
    let mut legend = legend(&series);
    let hollow = LegendEntry {
        group: String::new(),
        name: "asked, failed".into(),
        shape: Shape::Box { is_hollow: true },
        colour: BAD,
    };
    legend[0].name = "asked, passed".into();
    legend.insert(1, hollow);
    legend.push(LegendEntry {
        group: String::new(),
        name: required,
        shape: Shape::Line(Dash::Dashed, None),
        colour: TEXT,
    });
    let names = (1..).zip(trials).map(|(n, trial): (usize, _)| format!("{n} {}", trial.phase)).collect();
    let up = Axis::linear(format!("rate, {}", unit.unit));
    (!trials.is_empty()).then(|| Chart {
        title: format!("Requested and durable rate of each trial, {}", unit.unit),
        note: "A trial passes if no event is lost, no backlog grows and all data is durable in time. The \
               search raises the rate after a pass and lowers it after a failure. A trial without a bar ran \
               at full speed."
            .into(),
        legend,
        ..plot(&Axis::category("trial, in order", names), &up, &series, 230)
    })
}

/// Parts measured alone, fastest first, then the whole path.
fn ceilings(summary: &ResultSummary) -> Option<Chart> {
    let ceilings = &summary.ceilings;
    let mut alone: Vec<(String, f64)> = [
        ("copying in memory", ceilings.memory_bytes_per_second),
        ("source", ceilings.source_bytes_per_second),
        ("network path", ceilings.network_bytes_per_second),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    alone.extend(
        blocks::volumes(&ceilings.volumes).into_iter().filter_map(|(name, value)| Some((name, value?))),
    );
    alone.sort_by(|a, b| b.1.total_cmp(&a.1));
    let whole: Vec<(String, f64)> = [
        ("whole path, in trials", summary.knee_bytes_per_second),
        ("whole path, whole soak", summary.qualified_bytes_per_second),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect();
    if alone.is_empty() {
        return None;
    }
    let required = summary.required_bytes_per_second;
    let figures = || alone.iter().chain(&whole).map(|part| part.1);
    let (least, most) = (figures().fold(required, f64::min), figures().fold(required, f64::max));
    let unit = rate_scale(most);
    let dot = |place: usize, value: f64| {
        json!({
            "value": [figure(unit.of(value)), place],
            "label": { "show": true, "formatter": rate(value), "position": "right", "color": TEXT,
                "fontSize": 11 },
        })
    };
    let required_name = format!("required {}", rate(required));
    let series = [
        Series::new("", FAINT, Mark::Stems, figures().map(|value| figure(unit.of(value))).collect())
            .with_vertical_line(unit.of(required), &required_name, LabelPosition::Start),
        Series::new(
            "part alone",
            colour(0),
            Mark::Dots(Symbol::Circle),
            (0..).zip(&alone).map(|(place, part)| dot(place, part.1)).collect(),
        ),
        Series::new(
            "whole path",
            colour(1),
            Mark::Dots(Symbol::Diamond),
            (alone.len()..).zip(&whole).map(|(place, part)| dot(place, part.1)).collect(),
        ),
    ];
    let names: Vec<String> = alone.iter().chain(&whole).map(|part| part.0.clone()).collect();
    let height = 27 * names.len() as u32;
    let across = Axis::log(format!("rate, {} (logarithmic)", unit.unit))
        .range(round_end(unit.of(least) / 1.6, false), round_end(unit.of(most) * 1.2, true));
    Some(Chart {
        title: format!("Rate of each part and of the whole path, {}", unit.unit),
        note: "Parts left of the line are slower than required.".into(),
        ..plot(&across, &Axis::category("", names).reversed(), &series, height).with_right_margin(64)
    })
}

/// Required, wanted and sustained rate on one bar.
fn strip(summary: &ResultSummary) -> Option<Chart> {
    let required = summary.required_bytes_per_second;
    let held = summary.qualified_bytes_per_second.or(summary.knee_bytes_per_second)? / required;
    let upper = || summary.knee_interval?.upper_bytes_per_second;
    let failed = summary.failed_above.as_ref().map(|above| above.bytes_per_second).or_else(upper);
    let failed = failed.map(|failed| failed / required);
    // A much higher failed rate would compress the rest.
    let failed = failed.filter(|failed| *failed < 3.0 * held.max(summary.headroom_wanted));
    let name =
        if summary.qualified_bytes_per_second.is_some() { "sustained" } else { "sustained in trials only" };
    // Away from the lines for required and wanted.
    let side = if held > 3.0 * summary.headroom_wanted { "insideRight" } else { "insideLeft" };
    let bar = json!({
        "value": figure(held),
        "label": { "show": true, "formatter": format!("{name} {}", digits(held)), "position": side,
            "color": "--on-bar" },
        "itemStyle": { "color": if held >= summary.headroom_wanted { GOOD } else { BAD } },
    });
    let mut series = vec![
        Series::new("", GOOD, Mark::Bars, vec![bar])
            .with_unlabelled_line(1.0, Dash::Dashed)
            .with_unlabelled_line(summary.headroom_wanted, Dash::Dotted),
    ];
    let cross = |failed| vec![json!([figure(failed), 0])];
    series.extend(failed.map(|failed| Series::new("", BAD, Mark::Dots(Symbol::Cross), cross(failed))));
    let most = held.max(summary.headroom_wanted).max(failed.unwrap_or(0.0));
    let across = Axis::linear("times the required rate").range(0.0, (most * 1.1 * 10.0).ceil() / 10.0);
    let rows = [
        ("required", Some(1.0)),
        ("wanted", Some(summary.headroom_wanted)),
        (name, Some(held)),
        ("lowest failed", failed),
    ];
    let rows =
        rows.into_iter().filter_map(|(name, value)| Some(vec![name.into(), digits(value?).into()])).collect();
    let key = |name: String, shape, colour| LegendEntry { group: String::new(), name, shape, colour };
    let mut legend = vec![
        key("required".into(), Shape::Line(Dash::Dashed, None), TEXT),
        key(format!("wanted {}", digits(summary.headroom_wanted)), Shape::Line(Dash::Dotted, None), TEXT),
    ];
    legend.extend(
        failed.map(|failed| key(format!("failed {}", digits(failed)), Shape::Dot(Symbol::Cross), BAD)),
    );
    Some(Chart {
        title: "Times the required rate".into(),
        legend,
        table: Table { columns: vec![left(""), right("times")], rows },
        ..plot(&across, &Axis::category("", vec![String::new()]), &series, 56)
    })
}

/// Events lost at each stage, `None` without losses.
fn losses(ledger: &LedgerSummary) -> Option<Chart> {
    if ledger.lost.events == 0 {
        return None;
    }
    let missing = |from: Count, to: Count| from.events.saturating_sub(to.events);
    let mut stages = vec![
        ("at the source".to_owned(), ledger.lost_at_source.events),
        ("before the recorder".to_owned(), missing(ledger.sent, ledger.received)),
        ("before the write".to_owned(), missing(ledger.received, ledger.written)),
        ("before the flush".to_owned(), missing(ledger.written, ledger.durable)),
    ];
    // What was not read is not missing.
    let verified = ledger.verified.filter(|_| ledger.unread_segments == 0);
    stages
        .extend(verified.map(|verified| ("at read-back".to_owned(), missing(ledger.on_volumes(), verified))));
    let bars = stages.iter().map(|(_, events)| {
        json!({ "value": events,
            "label": { "show": true, "position": "right", "formatter": number(*events), "color": TEXT } })
    });
    let series = [Series::new("", BAD, Mark::Bars, bars.collect())];
    let most = stages.iter().map(|stage| stage.1).max().unwrap_or(1).max(1) as f64;
    let rows =
        stages.iter().map(|(name, events)| vec![name.as_str().into(), number(*events).into()]).collect();
    Some(Chart {
        title: "Events lost at each stage".into(),
        note: "Difference to the previous stage.".into(),
        table: Table { columns: vec![left("stage"), right("events lost")], rows },
        ..plot(
            &Axis::linear("events").range(0.0, most * 1.15),
            &Axis::category("", stages.iter().map(|stage| stage.0.clone()).collect()).reversed(),
            &series,
            27 * stages.len() as u32,
        )
    })
}
