//! The page of a qualification: the verdict's eight blocks with their drawings.

use keepup_results::{Count, LedgerSummary, ResultSummary, TrialResult};
use serde_json::json;

use crate::blocks;
use crate::chart::{
    Axis, BAD, Chart, Dash, FAINT, GOOD, Key, Mark, Series, Shape, Side, Symbol, TEXT, colour, figure, keys,
    plot, rate_scale, round_end,
};
use crate::format::{digits, number, rate};
use crate::history::History;
use crate::kinds::timeline;
use crate::page::{Block, Document, Item, Page, Table, left, right};

/// All that the HTML page has of a qualification.
pub(crate) fn document(summary: &ResultSummary, history: &History) -> Document {
    let untested = match summary.limits.is_empty() {
        true => Item::Text("No limit of this test was recorded.".to_owned()),
        false => Item::List(summary.limits.clone()),
    };
    let mut limit = blocks::bottleneck(summary.bottleneck.as_ref());
    let untested = Block::new("What was not tested", vec![untested]);
    let mut staircase = blocks::staircase(&summary.trials);
    behind(&mut staircase, trials(summary));
    let mut comparison = blocks::comparison(summary);
    behind(&mut comparison, ceilings(summary));
    let mut proof = blocks::proof(summary);
    proof.items.extend(strip(summary).map(item));
    let mut ledger = blocks::ledger(&summary.ledger);
    ledger.items.extend(losses(&summary.ledger).map(item));
    let mut through_time = Vec::new();
    through_time.extend(history.trouble.clone().map(Item::Text));
    let pool = summary.plan.get("pool_bytes").and_then(serde_json::Value::as_f64);
    through_time.extend(timeline::charts(history, pool).into_iter().map(item));
    if !history.notes.is_empty() {
        through_time.push(Item::List(history.notes.clone()));
    }
    proof.is_beside = true;
    let mut all = vec![proof, comparison, staircase];
    if !through_time.is_empty() {
        all.push(Block::new("Through time", through_time));
    }
    let mut repeat = blocks::limits(summary);
    // What was not tested stands at the top.
    repeat.items.retain(|item| matches!(item, Item::Facts(_)));
    repeat.title = "How to repeat".to_owned();
    all.extend([ledger, blocks::cost(summary), repeat]);
    limit.title = "What limits it".to_owned();
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

/// Puts a chart in the place of a block's first table, which then stands behind it.
fn behind(block: &mut Block, chart: Option<Chart>) {
    let Some(mut chart) = chart else { return };
    let place = block.items.iter().position(|item| matches!(item, Item::Table(_)));
    let Some(place) = place else { return };
    if let Item::Table(table) = &mut block.items[place] {
        chart.table = std::mem::take(table);
    }
    block.items[place] = item(chart);
}

/// Asked and durable rate of every trial; what failed is hollow and crossed.
fn trials(summary: &ResultSummary) -> Option<Chart> {
    let trials = &summary.trials;
    let most =
        trials.iter().map(|t| t.asked_bytes_per_second.max(t.durable_bytes_per_second)).fold(0.0, f64::max);
    let most = most.max(summary.required_bytes_per_second);
    let unit = rate_scale(most);
    let asked = trials.iter().map(|trial| {
        // A trial without a schedule is asked for as much as goes.
        let rate = if trial.asked_bytes_per_second > 0.0 { trial.asked_bytes_per_second } else { f64::NAN };
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
            .with_level(unit.of(summary.required_bytes_per_second), ""),
        Series::new("durable, held", TEXT, Mark::Dots(Symbol::Circle), dots(true)),
        Series::new("durable, failed", BAD, Mark::Dots(Symbol::Cross), dots(false)),
    ];
    let mut keys = keys(&series);
    let hollow = Key {
        group: String::new(),
        name: "asked, failed".into(),
        shape: Shape::Box { is_hollow: true },
        colour: BAD,
    };
    keys[0].name = "asked, held".into();
    keys.insert(1, hollow);
    keys.push(Key {
        group: String::new(),
        name: required,
        shape: Shape::Line(Dash::Dashed, None),
        colour: TEXT,
    });
    let names = (1..).zip(trials).map(|(n, trial): (usize, _)| format!("{n} {}", trial.phase)).collect();
    let up = Axis::linear(format!("rate, {}", unit.unit));
    (!trials.is_empty()).then(|| Chart {
        title: format!("Rate asked of the source and rate made durable in each trial, {}", unit.unit),
        note: "A trial holds when nothing is lost, no backlog grows and all is durable in time; the search \
               goes up where it held and down where it failed. A trial without a bar went as fast as it \
               could."
            .into(),
        keys,
        ..plot(&Axis::category("trial, in the order in which they were run", names), &up, &series, 230)
    })
}

/// All that was measured alone, from the fastest down to the weakest, and the whole path below.
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
            .with_place(unit.of(required), &required_name, Side::Start),
        Series::new(
            "one part alone",
            colour(0),
            Mark::Dots(Symbol::Circle),
            (0..).zip(&alone).map(|(place, part)| dot(place, part.1)).collect(),
        ),
        Series::new(
            "all of it together",
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
        title: format!("From the fastest part down to the weakest, and what is required, {}", unit.unit),
        note: "Each part alone, then all together. What lies left of the line is slower than required."
            .into(),
        ..plot(&across, &Axis::category("", names).downwards(), &series, height).with_room_at_right(64)
    })
}

/// What was held against what is required and wanted, on one line.
fn strip(summary: &ResultSummary) -> Option<Chart> {
    let required = summary.required_bytes_per_second;
    let held = summary.qualified_bytes_per_second.or(summary.knee_bytes_per_second)? / required;
    let failed = summary.knee_interval.and_then(|i| i.upper_bytes_per_second).map(|upper| upper / required);
    // One that failed far beyond would press the rest together.
    let failed = failed.filter(|failed| *failed < 3.0 * held.max(summary.headroom_wanted));
    let name = if summary.qualified_bytes_per_second.is_some() { "held" } else { "held in trials only" };
    // Where the lines of what is required and wanted are not.
    let side = if held > 3.0 * summary.headroom_wanted { "insideRight" } else { "insideLeft" };
    let bar = json!({
        "value": figure(held),
        "label": { "show": true, "formatter": format!("{name} {}", digits(held)), "position": side,
            "color": "--on-bar" },
        "itemStyle": { "color": if held >= summary.headroom_wanted { GOOD } else { BAD } },
    });
    let mut series = vec![
        Series::new("", GOOD, Mark::Bars, vec![bar])
            .with_marked_place(1.0, Dash::Dashed)
            .with_marked_place(summary.headroom_wanted, Dash::Dotted),
    ];
    let cross = |failed| vec![json!([figure(failed), 0])];
    series.extend(failed.map(|failed| Series::new("", BAD, Mark::Dots(Symbol::Cross), cross(failed))));
    let most = held.max(summary.headroom_wanted).max(failed.unwrap_or(0.0));
    let across = Axis::linear("times the required rate").range(0.0, (most * 1.1 * 10.0).ceil() / 10.0);
    let rows = [
        ("required", Some(1.0)),
        ("wanted", Some(summary.headroom_wanted)),
        (name, Some(held)),
        ("failed first", failed),
    ];
    let rows =
        rows.into_iter().filter_map(|(name, value)| Some(vec![name.into(), digits(value?).into()])).collect();
    let key = |name: String, shape, colour| Key { group: String::new(), name, shape, colour };
    let mut keys = vec![
        key("required".into(), Shape::Line(Dash::Dashed, None), TEXT),
        key(format!("wanted {}", digits(summary.headroom_wanted)), Shape::Line(Dash::Dotted, None), TEXT),
    ];
    keys.extend(
        failed.map(|failed| key(format!("failed {}", digits(failed)), Shape::Dot(Symbol::Cross), BAD)),
    );
    Some(Chart {
        title: "Times the required rate".into(),
        keys,
        table: Table { columns: vec![left(""), right("times")], rows },
        ..plot(&across, &Axis::category("", vec![String::new()]), &series, 56)
    })
}

/// Where events were lost, stage by stage; `None` when none was.
fn losses(ledger: &LedgerSummary) -> Option<Chart> {
    if ledger.lost.events == 0 {
        return None;
    }
    let missing = |from: Count, to: Count| from.events.saturating_sub(to.events);
    let mut stages = vec![
        ("at the source".to_owned(), ledger.lost_at_source.events),
        ("on the way in".to_owned(), missing(ledger.sent, ledger.received)),
        ("before the write".to_owned(), missing(ledger.received, ledger.written)),
        ("before the flush".to_owned(), missing(ledger.written, ledger.durable)),
    ];
    stages.extend(
        ledger.verified.map(|verified| ("when read back".to_owned(), missing(ledger.on_volumes(), verified))),
    );
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
        note: "Counted from what the stage before had.".into(),
        table: Table { columns: vec![left("stage"), right("events lost")], rows },
        ..plot(
            &Axis::linear("events").range(0.0, most * 1.15),
            &Axis::category("", stages.iter().map(|stage| stage.0.clone()).collect()).downwards(),
            &series,
            27 * stages.len() as u32,
        )
    })
}
