//! Page of a prediction: bottleneck of a modelled machine, and the assumptions.

use keepup_results::{
    Assumption, Enough, MoreOf, PredictSummary, PredictedBuffer, PredictedPart, Prediction, Stored,
};

use super::common::{self, PageContent, charts};
use super::{predict_charts, predict_papers};
use crate::format::{bytes, digits, number, or_not_measured, percent, plural, rate, seconds, shorten};
use crate::page::{Block, Document, Fact, Item};
use crate::table::{Cell, Table, Tone, left, right};

const NAME_CHARACTERS_MAX: usize = 48;
/// Most characters of the name of a resource, or of a point of a sweep.
const SHORT_NAME_CHARACTERS_MAX: usize = 24;
/// Most characters of a name in the table of points: with both bottlenecks it fits 80 columns.
const COLUMN_NAME_CHARACTERS_MAX: usize = 10;
const POINTS_MAX: usize = 600;
/// Utilisation from which a bottleneck counts as full. Operations that wait for each other stay below.
const FULL: f64 = 0.995;
/// Assumptions that a terminal shows, most important first.
const ASSUMPTIONS_ON_TERMINAL: usize = 8;

pub(super) fn document(stored: &Stored, summary: &PredictSummary) -> Document {
    let content = match (&summary.papers, &summary.points[..]) {
        (Some(papers), _) => predict_papers::content(papers),
        (None, [one]) => of_one(summary, one),
        (None, _) => of_sweep(summary),
    };
    let title = match summary.papers {
        Some(_) => "Predictions of the model for five papers".to_owned(),
        None => format!("{} on {}", summary.workload, summary.machine.title),
    };
    let mut blocks = content.blocks;
    blocks.extend(assumptions(&summary.assumptions));
    let content = PageContent {
        blocks,
        cautions: content.cautions.into_iter().chain(summary.limits.iter().cloned()).collect(),
        omits_figures: true,
        ..content
    };
    let mut document = common::document(stored, content);
    document.glance[0] = match &summary.papers {
        Some(papers) => predict_papers::skill(&papers.skill),
        None => machine(summary),
    };
    document.page.headline.title = format!("{title}, {}", summary.created);
    document
}

fn machine(summary: &PredictSummary) -> Block {
    let machine = &summary.machine;
    let mut facts = vec![
        Fact::new("machine", format!("{} ({})", machine.title, machine.name)),
        Fact::new("path", machine.path.as_str()),
        Fact::new("operation", bytes(machine.operation_bytes as u64)),
    ];
    facts.extend(machine.event_bytes.map(|event| Fact::new("event", bytes(event as u64))));
    if !machine.with.is_empty() {
        facts.push(Fact::new("changed", machine.with.join(", ")));
    }
    if let Some(under_way) = machine.operations_under_way {
        facts.push(Fact::new("in flight", plural(u64::from(under_way), "operation")));
    }
    if machine.hosts > 1 {
        facts.push(Fact::new("machines", machine.hosts.to_string()));
    }
    let needed = summary
        .required_bytes_per_second
        .map(|needed| format!("{}, headroom {}x", rate(needed), digits(summary.headroom_wanted)));
    facts.push(Fact::new("required", needed.unwrap_or_else(|| "maximum rate".to_owned())));
    Block::new("Prediction settings", vec![Item::Facts(facts)])
}

fn of_one(summary: &PredictSummary, point: &Prediction) -> PageContent {
    let mut blocks = vec![parts(point)];
    blocks.extend(charts("Utilisation of each stage", predict_charts::utilisation(summary, point)));
    blocks.extend(point.enough.as_ref().map(enough));
    blocks.extend(buffers(&point.buffers));
    PageContent {
        answer: Some(answer(summary, point)),
        sentences: sentences(summary, point),
        blocks,
        ..PageContent::default()
    }
}

fn answer(summary: &PredictSummary, point: &Prediction) -> (String, Tone) {
    match point.headroom {
        None => ("PREDICTED".to_owned(), Tone::Plain),
        Some(headroom) if headroom >= summary.headroom_wanted => ("SUFFICIENT".to_owned(), Tone::Good),
        Some(headroom) if headroom >= 1.0 => ("SUFFICIENT, WITHOUT HEADROOM".to_owned(), Tone::Doubtful),
        Some(_) => ("NOT SUFFICIENT".to_owned(), Tone::Bad),
    }
}

/// Formats a predicted rate with its interval.
fn rate_with_interval(point: &Prediction) -> String {
    let interval = interval(point).replace(')', " at 95 %)");
    format!("{}{interval}", rate(point.bytes_per_second))
}

/// 95 % interval in brackets, empty without one.
fn interval(point: &Prediction) -> String {
    let interval = point.lower_bytes_per_second.zip(point.upper_bytes_per_second);
    let interval = interval.filter(|(lower, upper)| lower < upper);
    interval.map_or_else(String::new, |(lower, upper)| format!(" ({} to {})", rate(lower), rate(upper)))
}

/// Name of a resource with its count.
fn named(part: &PredictedPart, characters_max: usize) -> String {
    let name = shorten(&part.name, characters_max);
    match part.count {
        1 => name,
        count => format!("{count} {name}"),
    }
}

/// Events of the detector per second. Also operations, if they wait for each other or no event is known.
fn events(summary: &PredictSummary, point: &Prediction) -> String {
    let operations = format!("{} operations per second", digits(point.operations_per_second));
    let is_closed = summary.machine.operations_under_way.is_some();
    match point.events_per_second {
        None => operations,
        Some(events) if is_closed => format!("{} events and {operations}", digits(events)),
        Some(events) => format!("{} events per second", digits(events)),
    }
}

fn sentences(summary: &PredictSummary, point: &Prediction) -> Vec<String> {
    let mut sentences =
        vec![format!("Predicted: {}, {}.", rate_with_interval(point), events(summary, point))];
    if let Some(headroom) = point.headroom {
        sentences.push(format!("Headroom: {} the required rate.", times(headroom)));
    }
    let mut parts = point.parts.iter();
    if let Some(first) = parts.next() {
        let why = if first.is_waiting { " (its master waits for responses)" } else { "" };
        let mut sentence = format!("The bottleneck is {}{why}", named(first, NAME_CHARACTERS_MAX));
        if let Some(next) = parts.find(|part| part.name != first.name) {
            let next_name = named(next, NAME_CHARACTERS_MAX);
            sentence += &format!("; next: {next_name} at {}", rate(next.bytes_per_second));
        }
        sentences.push(sentence + ".");
        if first.utilisation < FULL {
            let in_use = percent(100.0 * first.utilisation);
            sentences.push(format!("The operations in flight use {in_use} of it."));
        }
        let gain = first.gain_of_a_tenth.filter(|gain| *gain > 0.0);
        let gain = gain.map(|gain| {
            format!("10 % more of {} increases the rate by {}.", first.name, percent(100.0 * gain))
        });
        sentences.extend(gain);
    }
    if let Some(cores) = point.cores_busy {
        let required = point.cores_busy_at_required;
        let required = required.map(|cores| format!(", {} at the required rate", digits(cores)));
        let required = required.unwrap_or_default();
        sentences.push(format!("Cores busy at that rate: {}{required}.", digits(cores)));
    }
    sentences
}

fn times(headroom: f64) -> String {
    if headroom < 1.0 { percent(100.0 * headroom) } else { format!("{}x", digits(headroom)) }
}

fn parts(point: &Prediction) -> Block {
    let row = |(place, part): (usize, &PredictedPart)| -> Vec<Cell> {
        let kind = if part.is_waiting { "waits for responses" } else { "" };
        let gain = part.gain_of_a_tenth.map_or_else(String::new, |gain| match gain > 0.0 {
            true => format!("+{}", percent(100.0 * gain)),
            false => "none".to_owned(),
        });
        let tone = if place == 0 { Tone::Doubtful } else { Tone::Plain };
        vec![
            Cell::toned(shorten(&part.name, SHORT_NAME_CHARACTERS_MAX), tone),
            part.count.to_string().into(),
            rate(part.bytes_per_second).into(),
            percent(100.0 * part.utilisation).into(),
            part.utilisation_at_required.map_or_else(|| "".into(), at_required),
            gain.into(),
            kind.into(),
            shorten(&part.part, NAME_CHARACTERS_MAX).into(),
        ]
    };
    let columns = vec![
        left("resource"),
        right("count"),
        right("limit alone"),
        right("utilisation"),
        right("at the required rate"),
        right("gain of 10 % more"),
        left(""),
        left("part"),
    ];
    let mut table = Table { columns, rows: point.parts.iter().enumerate().map(row).collect() };
    if point.parts.iter().all(|part| part.utilisation_at_required.is_none()) {
        without(&mut table, "at the required rate");
    }
    Block::new("Resources, bottleneck first", vec![Item::Table(table)])
}

/// Utilisation at the required rate.
fn at_required(utilisation: f64) -> Cell {
    let tone = if utilisation > 1.0 { Tone::Bad } else { Tone::Plain };
    Cell::toned(percent(100.0 * utilisation), tone)
}

fn enough(enough: &Enough) -> Block {
    let wanted = rate(enough.bytes_per_second);
    let lead = match enough.hosts {
        Some(hosts) => {
            format!("{wanted} with headroom requires {} of this kind.", plural(u64::from(hosts), "machine"))
        }
        None => format!(
            "{wanted} with headroom is not reached by any number of machines: they share the bottleneck."
        ),
    };
    let more = |more: &MoreOf| match more.needed {
        Some(needed) => format!("{}: {needed} instead of {}", more.name, more.count),
        None => format!("{}: more does not help, because its master waits for responses", more.name),
    };
    let mut items = vec![Item::Text(lead)];
    if !enough.more.is_empty() {
        items.push(Item::Text("Or in one machine:".to_owned()));
        items.push(Item::List(enough.more.iter().map(more).collect()));
    }
    Block::new("Sufficient configurations", items)
}

fn buffers(buffers: &[PredictedBuffer]) -> Option<Block> {
    let row = |buffer: &PredictedBuffer| -> Vec<Cell> {
        let size = |size: f64| bytes(size as u64);
        let repeated = match (buffer.every_seconds, buffer.repeated_bytes) {
            (None, _) => String::new(),
            (Some(_), Some(needed)) => size(needed),
            (Some(_), None) => "unlimited".to_owned(),
        };
        let lost = buffer.lost_share.map_or_else(
            || "".into(),
            |lost| {
                let tone = if lost > 0.0 { Tone::Bad } else { Tone::Good };
                Cell::toned(percent(100.0 * lost), tone)
            },
        );
        vec![
            seconds(buffer.stall_seconds).into(),
            rate(buffer.bytes_per_second).into(),
            size(buffer.bytes).into(),
            buffer.recovery_seconds.map_or_else(|| "never".to_owned(), seconds).into(),
            buffer.every_seconds.map_or_else(String::new, seconds).into(),
            repeated.into(),
            buffer.given_bytes.map_or_else(String::new, size).into(),
            lost,
        ]
    };
    let columns = vec![
        right("stall"),
        right("input rate"),
        right("buffer for one"),
        right("drained after"),
        right("stall interval"),
        right("buffer for all"),
        right("buffer given"),
        right("lost"),
    ];
    let mut table = Table { columns, rows: buffers.iter().map(row).collect() };
    if buffers.iter().all(|buffer| buffer.every_seconds.is_none()) {
        without(&mut table, "stall interval");
        without(&mut table, "buffer for all");
    }
    if buffers.iter().all(|buffer| buffer.given_bytes.is_none()) {
        without(&mut table, "buffer given");
        without(&mut table, "lost");
    }
    (!buffers.is_empty()).then(|| Block::new("Buffer for stalls", vec![Item::Table(table)]))
}

fn of_sweep(summary: &PredictSummary) -> PageContent {
    let axis = shorten(summary.sweep.as_deref().unwrap_or_default(), SHORT_NAME_CHARACTERS_MAX);
    let ends = summary.points.first().zip(summary.points.last());
    let mut sentences: Vec<String> = ends
        .into_iter()
        .map(|(first, last)| {
            format!(
                "{} at {axis} {}, {} at {}.",
                rate(first.bytes_per_second),
                first.label,
                rate(last.bytes_per_second),
                last.label
            )
        })
        .collect();
    sentences.extend(changes(&summary.points).into_iter().map(|(before, point)| {
        let name = |point: &Prediction| point.parts.first().map(|part| part.name.clone()).unwrap_or_default();
        format!(
            "The bottleneck changes from {} to {} between {axis} {} and {}.",
            name(before),
            name(point),
            before.label,
            point.label
        )
    }));
    if let Some(wanted) = summary.required_bytes_per_second {
        let is_enough =
            |point: &&Prediction| point.headroom.is_some_and(|headroom| headroom >= summary.headroom_wanted);
        let found = summary.points.iter().find(is_enough);
        sentences.push(match found {
            Some(point) => format!("{} with headroom requires {axis} {}.", rate(wanted), point.label),
            None => nearest(summary, wanted),
        });
    }
    PageContent {
        answer: Some((format!("PREDICTED OVER {}", axis.to_uppercase()), Tone::Plain)),
        sentences,
        blocks: charts("Rate over the sweep", predict_charts::rates(summary, table(summary)))
            .into_iter()
            .chain([points(summary)])
            .collect(),
        ..PageContent::default()
    }
}

/// Point that comes closest to a rate that none reaches.
fn nearest(summary: &PredictSummary, wanted: f64) -> String {
    let none = format!("No point reaches {} with headroom", rate(wanted));
    let best = summary.points.iter().max_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
    let Some(best) = best else { return format!("{none}.") };
    let short = 1.0 - best.bytes_per_second / (wanted * summary.headroom_wanted);
    let hosts = best.enough.as_ref().and_then(|enough| enough.hosts);
    let hosts = hosts.map(|hosts| format!("; {} such machines are sufficient", number(u64::from(hosts))));
    format!(
        "{none}; {} {} comes closest, {} short{}.",
        summary.sweep.as_deref().unwrap_or_default(),
        best.label,
        percent(100.0 * short),
        hosts.unwrap_or_default()
    )
}

/// Points at which the bottleneck changes, with their predecessors.
fn changes(points: &[Prediction]) -> Vec<(&Prediction, &Prediction)> {
    let first = |point: &Prediction| point.parts.first().map(|part| part.name.clone());
    points
        .windows(2)
        .filter_map(|pair| (first(&pair[0]) != first(&pair[1])).then_some((&pair[0], &pair[1])))
        .collect()
}

fn table(summary: &PredictSummary) -> Table {
    let row = |point: &Prediction| -> Vec<Cell> {
        let part = |number: usize| {
            let part = point.parts.get(number);
            part.map(|part| named(part, COLUMN_NAME_CHARACTERS_MAX)).unwrap_or_default()
        };
        vec![
            shorten(&point.label, SHORT_NAME_CHARACTERS_MAX).into(),
            format!("{}{}", rate(point.bytes_per_second), interval(point)).into(),
            or_not_measured(point.headroom, times).into(),
            or_not_measured(point.cores_busy, digits).into(),
            part(0).into(),
            part(1).into(),
        ]
    };
    let axis = shorten(summary.sweep.as_deref().unwrap_or_default(), SHORT_NAME_CHARACTERS_MAX);
    let is_number = |point: &Prediction| point.label.parse::<f64>().is_ok();
    let columns = vec![
        if summary.points.iter().all(is_number) { right(axis) } else { left(axis) },
        right("rate (95 %)"),
        right("of the required rate"),
        right("cores busy"),
        left("bottleneck"),
        left("second"),
    ];
    let mut table = Table { columns, rows: summary.points.iter().take(POINTS_MAX).map(row).collect() };
    // Empty columns are omitted.
    if summary.required_bytes_per_second.is_none() {
        without(&mut table, "of the required rate");
    }
    if summary.points.iter().all(|point| point.cores_busy.is_none()) {
        without(&mut table, "cores busy");
    }
    table
}

fn without(table: &mut Table, title: &str) {
    if let Some(place) = table.columns.iter().position(|column| column.title == title) {
        table.columns.remove(place);
        table.rows.iter_mut().for_each(|row| drop(row.remove(place)));
    }
}

fn points(summary: &PredictSummary) -> Block {
    let mut items = vec![Item::Table(table(summary))];
    if summary.points.len() > POINTS_MAX {
        items.push(Item::Text(format!(
            "{} more points are in the result.",
            summary.points.len() - POINTS_MAX
        )));
    }
    Block::new("Points", items)
}

/// Assumptions with their sources, largest contribution to the variance first.
fn assumptions(assumptions: &[Assumption]) -> Option<Block> {
    let mut sorted: Vec<&Assumption> = assumptions.iter().collect();
    sorted.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
    let row = |one: &&Assumption| -> Vec<Cell> {
        let is_weak = matches!(one.source.as_str(), "guessed" | "fitted");
        let tone = if is_weak { Tone::Doubtful } else { Tone::Plain };
        vec![
            one.name.as_str().into(),
            one.value.as_str().into(),
            one.range.clone().unwrap_or_default().into(),
            one.share.map_or_else(String::new, |share| percent(100.0 * share)).into(),
            Cell::toned(one.source.as_str(), tone),
            one.from.as_str().into(),
        ]
    };
    let columns = vec![
        left("assumption"),
        right("value"),
        right("range"),
        right("share of variance"),
        left("source"),
        left(""),
    ];
    let rows: Vec<Vec<Cell>> = sorted.iter().map(row).collect();
    let block = Block::new("Assumptions", vec![Item::Table(Table { columns, rows })]);
    Some(Block { terminal_rows: Some(ASSUMPTIONS_ON_TERMINAL), ..block }).filter(|_| !assumptions.is_empty())
}
