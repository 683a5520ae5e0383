//! Page of a comparison: differences between the systems, then ratios of their figures.

use keepup_error::Cause;
use keepup_results::{
    Change, CompareSummary, ComparedCell, ComparedDifference, ComparedIndex, ComparedInterval, ComparedLimit,
    ComparedRow, ComparedRuns, IntervalPosition, Stored,
};

use super::common::{self, PageContent, charts, format_quantity};
use super::forest::{self, Effect, Ratio};
use crate::chart::{Chart, short};
use crate::format::{percent, plural, rate, shorten};
use crate::page::{Block, Document, Item};
use crate::table::{Cell, Table, Tone, left, right};

const ROWS_MAX: usize = 600;
const NAME_CHARACTERS_MAX: usize = 40;
/// Most differences and violations listed.
const NAMED_MAX: usize = 8;
/// Relative standard deviation above which it is printed.
const SCATTER: f64 = 0.05;

pub(super) fn document(stored: &Stored, summary: &CompareSummary) -> Document {
    let mut content = PageContent {
        answer: Some(answer(summary)),
        sentences: sentences(summary),
        cautions: summary.notes.clone(),
        at_a_glance: Some(differences(summary)),
        // The table of medians has all figures.
        omits_figures: true,
        ..PageContent::default()
    };
    content.blocks.extend(charts("Index of each system", indices(summary)));
    let others = summary.systems.iter().enumerate().skip(1);
    // The table of medians has the ratios.
    let drawn = others.filter_map(|(number, system)| ratios(summary, number, &system.name));
    let drawn: Vec<Chart> = drawn.map(|chart| Chart { is_in_table: true, ..chart }).collect();
    content.blocks.extend(charts("Ratio of each figure to the baseline", drawn));
    content.blocks.push(systems(summary));
    content.blocks.extend(qualified(summary));
    content.blocks.push(rows(summary));
    common::document(stored, content)
}

fn answer(summary: &CompareSummary) -> (String, Tone) {
    match (&summary.limit, &summary.not_ranked) {
        (Some(limit), _) if !limit.failed.is_empty() => ("LIMIT FAILED".to_owned(), Tone::Bad),
        (Some(limit), _) if !limit.open.is_empty() => ("LIMIT OPEN".to_owned(), Tone::Doubtful),
        (Some(_), _) => ("LIMIT HOLDS".to_owned(), Tone::Good),
        (None, Some(_)) => ("NOT RANKED".to_owned(), Tone::Doubtful),
        (None, None) if is_too_few(summary) => ("TOO FEW RUNS".to_owned(), Tone::Doubtful),
        (None, None) => ("COMPARED".to_owned(), Tone::Plain),
    }
}

/// Whether no system has enough values to be ranked.
fn is_too_few(summary: &CompareSummary) -> bool {
    !summary.runs_needed.is_empty() && summary.runs_needed.len() + 1 == summary.systems.len()
}

fn sentences(summary: &CompareSummary) -> Vec<String> {
    let mut sentences: Vec<String> = summary.not_ranked.iter().flat_map(|why| not_ranked(why)).collect();
    let baseline = summary.systems.first().map_or("the baseline", |system| system.name.as_str());
    for index in summary.indices.iter().filter(|index| index.system != baseline) {
        let Some(value) = index.index else { continue };
        let bounds = index.lower.zip(index.upper);
        let bounds = bounds.map(|(lower, upper)| format!(" ({} to {} at 95 %)", short(lower), short(upper)));
        sentences.push(format!(
            "{}: {}x {baseline}{}; {}: {} better, {} worse.",
            index.system,
            short(value),
            bounds.unwrap_or_default(),
            plural(u64::from(index.rows), "figure"),
            index.better,
            index.worse
        ));
    }
    for needed in &summary.runs_needed {
        sentences.extend(runs_needed(needed, baseline));
        sentences.extend(intervals(summary, &needed.system));
    }
    sentences.extend(summary.limit.iter().flat_map(limit));
    sentences
}

/// Reason for the absence of a ratio, and the runs that would allow one.
fn runs_needed(needed: &ComparedRuns, baseline: &str) -> Vec<String> {
    let difference = format!("{:.0} %", 100.0 * needed.difference);
    let more = [(needed.more_of_baseline, baseline), (needed.more_of_system, needed.system.as_str())];
    let more: Vec<String> = more
        .into_iter()
        .filter(|(more, _)| *more > 0)
        .map(|(more, name)| format!("{} of {name}", plural(u64::from(more), "more run")))
        .collect();
    let more = more.join(" and ");
    let remedy = match needed.spread {
        Some(spread) => format!(
            "{more} would resolve a difference of {difference}: the largest spread is {} ({}).",
            percent(100.0 * spread),
            needed.figure
        ),
        None => format!(
            "{more} are the least that the test accepts, {} of each. The spread of one run is unknown: a \
             difference of {difference} may need more.",
            needed.runs
        ),
    };
    vec![format!("{} is not ranked against {baseline}: too few values.", needed.system), remedy]
}

/// Qualified intervals of a system and of the baseline, and what they show without a ratio.
fn intervals(summary: &CompareSummary, system: &str) -> Option<String> {
    let own = summary.qualified.iter().find(|interval| interval.system == system)?;
    let baseline = summary.qualified.first()?;
    let shows = match own.position? {
        IntervalPosition::Overlaps => "The intervals overlap: neither system is shown to be faster.",
        IntervalPosition::Above | IntervalPosition::Below => {
            "The intervals do not overlap, but further runs may differ by more than both ends of one run."
        }
    };
    Some(format!("{}; {}. {shows}", ends(own), ends(baseline)))
}

/// Both ends of a qualified rate.
fn ends(interval: &ComparedInterval) -> String {
    let held = format!("{} held {}", interval.system, rate(interval.held_bytes_per_second));
    match interval.failed_bytes_per_second {
        Some(failed) => format!("{held} and failed at {}", rate(failed)),
        None => format!("{held}, and no rate above it failed"),
    }
}

/// Reason for not ranking, with its hint.
fn not_ranked(why: &str) -> Vec<String> {
    let why = Cause::from_text(why);
    let hint = why.hint().map(|hint| format!("Hint: {hint}."));
    std::iter::once(format!("Not ranked: {why}.")).chain(hint).collect()
}

/// Figures below the limit.
fn limit(limit: &ComparedLimit) -> Vec<String> {
    let below = short(limit.below);
    let named = |lead: String, names: &[String]| {
        let shown = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
        let more = names.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{lead}: {shown}{more}."))
    };
    let failed = named(format!("Below {below} of the baseline"), &limit.failed);
    let open = named(format!("Not shown to reach {below} of the baseline"), &limit.open);
    let sentences: Vec<String> = failed.into_iter().chain(open).collect();
    match sentences.is_empty() {
        true => vec![format!("No figure is below {below} of the baseline.")],
        false => sentences,
    }
}

/// Differences of the systems, undeclared ones first.
fn differences(summary: &CompareSummary) -> Block {
    let title = "Differences";
    let mut sorted: Vec<&ComparedDifference> = summary.differences.iter().collect();
    sorted.sort_by_key(|difference| difference.is_declared);
    let text = |one: &&ComparedDifference| {
        let declared = if one.is_declared { "declared" } else { "not declared" };
        let (value, baseline) =
            (shorten(&one.value, NAME_CHARACTERS_MAX), shorten(&one.baseline, NAME_CHARACTERS_MAX));
        format!("{}, {} ({declared}): {value} instead of {baseline}", one.system, one.item)
    };
    let more = sorted.len().saturating_sub(NAMED_MAX);
    let mut list: Vec<String> = sorted.iter().take(NAMED_MAX).map(text).collect();
    if more > 0 {
        list.push(format!("and {more} more"));
    }
    match list.is_empty() {
        true => {
            Block::new(title, vec![Item::Text("No differences in the recorded environments.".to_owned())])
        }
        false => Block::new(title, vec![Item::List(list)]),
    }
}

fn indices(summary: &CompareSummary) -> Option<Chart> {
    let baseline = summary.systems.first()?.name.clone();
    let of = |index: &ComparedIndex| {
        let interval = index.lower.zip(index.upper);
        let shown = match interval {
            Some((lower, _)) if lower > 1.0 => Effect::Better,
            Some((_, upper)) if upper < 1.0 => Effect::Worse,
            _ => Effect::Nothing,
        };
        let words = format!(
            "{}, {} better, {} worse",
            plural(u64::from(index.rows), "row"),
            index.better,
            index.worse
        );
        Some(Ratio { name: index.system.clone(), ratio: index.index?, interval, effect: shown, words })
    };
    let ratios: Vec<Ratio> =
        summary.indices.iter().filter(|index| index.system != baseline).filter_map(of).collect();
    forest::chart("Geometric mean of all ratios", &baseline, &ratios)
}

fn words(change: Change) -> (&'static str, Effect) {
    match change {
        Change::Better => ("better", Effect::Better),
        Change::Worse => ("worse", Effect::Worse),
        Change::NotShown => ("no significant difference", Effect::Nothing),
        Change::TooFew => ("too few values", Effect::Nothing),
        Change::TooShort => ("too short", Effect::Nothing),
        Change::NotJudged => ("not judged", Effect::Nothing),
    }
}

fn name(row: &ComparedRow) -> String {
    let place = if row.place.is_empty() { String::new() } else { format!("{}: ", shorten(&row.place, 24)) };
    format!("{place}{}, {}", row.what, row.quantity.name())
}

fn ratios(summary: &CompareSummary, number: usize, system: &str) -> Option<Chart> {
    let baseline = summary.systems.first()?.name.clone();
    let of = |row: &ComparedRow| {
        let beside = row.cells.get(number)?.as_ref()?.beside?;
        let (words, shown) = words(beside.change);
        let interval = beside.lower.zip(beside.upper);
        Some(Ratio {
            name: name(row),
            ratio: beside.ratio?,
            interval,
            effect: shown,
            words: words.to_owned(),
        })
    };
    let ratios: Vec<Ratio> = summary.rows.iter().filter_map(of).collect();
    forest::chart(
        &format!(
            "{} compared with {}",
            shorten(system, NAME_CHARACTERS_MAX),
            shorten(&baseline, NAME_CHARACTERS_MAX)
        ),
        &baseline,
        &ratios,
    )
}

fn systems(summary: &CompareSummary) -> Block {
    let rows = summary.systems.iter().map(|system| -> Vec<Cell> {
        let source = system.published.as_ref().map_or_else(
            || system.results.join(", "),
            |publication| format!("published: {publication}; no repeats, therefore no intervals"),
        );
        vec![
            system.name.as_str().into(),
            shorten(&system.machines.join(", "), NAME_CHARACTERS_MAX).into(),
            system.created.as_str().into(),
            system.tool_version.clone().unwrap_or_default().into(),
            system.place.clone().unwrap_or_default().into(),
            source.into(),
        ]
    });
    let columns = vec![
        left("system"),
        left("machine"),
        left("measured"),
        left("keepup"),
        left("place"),
        left("source"),
    ];
    Block::new("Systems", vec![Item::Table(Table { columns, rows: rows.collect() })])
}

/// Both ends of the qualified rates.
fn qualified(summary: &CompareSummary) -> Option<Block> {
    let row = |interval: &ComparedInterval| -> Vec<Cell> {
        vec![
            interval.system.as_str().into(),
            rate(interval.held_bytes_per_second).into(),
            interval.failed_bytes_per_second.map_or_else(|| "none".to_owned(), rate).into(),
        ]
    };
    let columns = vec![left("system"), right("held"), right("failed")];
    let rows: Vec<Vec<Cell>> = summary.qualified.iter().map(row).collect();
    let how = "Highest rate that held and lowest rate above it that failed. Over several runs: the lowest \
               rate that held, and the highest that failed.";
    let items = vec![Item::Table(Table { columns, rows }), Item::Text(how.to_owned())];
    (!summary.qualified.is_empty()).then(|| Block::new("Qualified rates", items))
}

/// Median with its standard deviation if large, ratio with interval, and interpretation.
fn cell(row: &ComparedRow, cell: Option<&ComparedCell>) -> Cell {
    let Some(cell) = cell else { return "".into() };
    let mut value = format_quantity(row.quantity, cell.median);
    if let Some(variation) = cell.variation.filter(|variation| *variation > SCATTER) {
        value.push_str(&format!(" ±{:.0} %", 100.0 * variation));
    }
    let Some(beside) = cell.beside else { return value.into() };
    let (words, shown) = words(beside.change);
    let tone = match shown {
        Effect::Better => Tone::Good,
        Effect::Worse => Tone::Bad,
        Effect::Nothing => Tone::Plain,
    };
    let interval = beside.lower.zip(beside.upper);
    let interval = interval.map(|(lower, upper)| format!(" ({} to {})", short(lower), short(upper)));
    let ratio = beside.ratio.map(|ratio| format!("{}{}, ", short(ratio), interval.unwrap_or_default()));
    Cell::toned(format!("{value}, {}{words}", ratio.unwrap_or_default()), tone)
}

fn rows(summary: &CompareSummary) -> Block {
    let row = |row: &ComparedRow| -> Vec<Cell> {
        let cells = (0..summary.systems.len()).map(|n| cell(row, row.cells.get(n).and_then(Option::as_ref)));
        std::iter::once(Cell::from(name(row))).chain(cells).collect()
    };
    let mut columns = vec![left("")];
    columns.extend(summary.systems.iter().map(|system| right(system.name.clone())));
    let drawn: Vec<Vec<Cell>> = summary.rows.iter().take(ROWS_MAX).map(row).collect();
    let mut items = vec![Item::Table(Table { columns, rows: drawn })];
    if summary.rows.len() > ROWS_MAX {
        items.push(Item::Text(format!("{} more rows are in the result.", summary.rows.len() - ROWS_MAX)));
    }
    let beside = summary.rows.iter().flat_map(|row| &row.cells).flatten().filter_map(|cell| cell.beside);
    let (title, how) = match beside.filter_map(|beside| beside.ratio).next() {
        Some(_) => (
            "Medians and ratios to the baseline",
            "Median, with the standard deviation if above 5 %; ratio to the baseline (more than 1 is better) \
             with its 95 % interval; and whether the difference is significant.",
        ),
        None => ("Medians", "Median, with the standard deviation if above 5 %."),
    };
    items.push(Item::Text(how.to_owned()));
    Block::new(title, items)
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
