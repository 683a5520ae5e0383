//! A comparison for people: what differs, the ranking, every figure, what to make of it.
use keepup_results::{Change, CompareSummary, ComparedCell, ComparedRow, Quantity};

/// A difference is shown up to this many characters on each side.
const ITEM_CHARACTERS_MAX: usize = 60;
/// Differences of one axis that are shown; the JSON object has all.
const ITEMS_MAX: usize = 6;
/// Longer names stand below the table, and a number over it.
const HEAD_CHARACTERS_MAX: usize = 28;
/// Above this share of the mean, values are called noisy.
const NOISY: f64 = 0.05;

/// The whole page.
pub(super) fn page(summary: &CompareSummary) -> String {
    let mut lines = vec![format!("{}: {}", summary.workload, names(summary)), String::new()];
    lines.extend(differences(summary));
    lines.push(String::new());
    match &summary.not_ranked {
        Some(why) => lines.push(format!("not ranked: {why}")),
        None => lines.extend(ranking(summary)),
    }
    lines.push(String::new());
    lines.extend(rows(summary));
    lines.push("median (ratio to the baseline, more than 1 is better) [its interval of 95 %]".into());
    lines.push(
        "+ better, - worse: chance does not explain it; = no change shown; ? fewer than five values".into(),
    );
    lines.push("~ values of one system scatter by more than 5 %".into());
    lines.extend(limit(summary));
    lines.extend(summary.notes.iter().map(|note| format!("note: {note}")));
    lines.join("\n")
}

fn names(summary: &CompareSummary) -> String {
    let measured = summary.systems.iter().filter(|system| system.published.is_none());
    let mut systems = measured.map(|system| system.name.clone());
    let baseline = systems.next().unwrap_or_default();
    let published = summary.systems.iter().filter(|system| system.published.is_some()).count();
    let others: Vec<String> =
        systems.chain((published > 0).then(|| format!("{published} published systems"))).collect();
    format!("{} beside {baseline}", others.join(", "))
}

fn differences(summary: &CompareSummary) -> Vec<String> {
    if summary.differences.is_empty() {
        return vec!["nothing on record differs between them".into()];
    }
    let mut lines = vec!["what differs".to_owned()];
    let mut shown: Vec<(&str, &str, usize)> = Vec::new();
    for difference in &summary.differences {
        let key = (difference.system.as_str(), difference.axis.as_str());
        let place = shown.iter().position(|(system, axis, _)| (*system, *axis) == key);
        let place = place.unwrap_or_else(|| {
            shown.push((key.0, key.1, 0));
            shown.len() - 1
        });
        shown[place].2 += 1;
        if shown[place].2 <= ITEMS_MAX {
            lines.push(format!(
                "  {:<20} {:<12} {}: {} -> {}",
                difference.system,
                format!("{}{}", difference.axis, if difference.is_declared { "" } else { " !" }),
                difference.item,
                short(&difference.baseline),
                short(&difference.value)
            ));
        }
    }
    for (system, axis, count) in shown.iter().filter(|(_, _, count)| *count > ITEMS_MAX) {
        lines.push(format!("  {system:<20} {axis:<12} and {} more", count - ITEMS_MAX));
    }
    if summary.differences.iter().any(|difference| !difference.is_declared) {
        lines.push("  !: not declared with --axis".into());
    }
    lines
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(ITEM_CHARACTERS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn ranking(summary: &CompareSummary) -> Vec<String> {
    let mut ranked: Vec<_> = summary.indices.iter().filter(|index| index.index.is_some()).collect();
    ranked.sort_by(|a, b| b.index.unwrap_or(0.0).total_cmp(&a.index.unwrap_or(0.0)));
    let mut lines = vec![format!(
        "{:<28} {:>7} {:>18} {:>6} {:>7} {:>6}",
        "system", "index", "95 %", "rows", "better", "worse"
    )];
    for index in ranked {
        let interval = match (index.lower, index.upper) {
            (Some(lower), Some(upper)) => format!("{lower:.3} to {upper:.3}"),
            _ => "-".to_owned(),
        };
        lines.push(format!(
            "{:<28} {:>7.3} {interval:>18} {:>6} {:>7} {:>6}",
            index.system,
            index.index.unwrap_or(f64::NAN),
            index.rows,
            index.better,
            index.worse
        ));
    }
    lines
}

fn rows(summary: &CompareSummary) -> Vec<String> {
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let label = |row: &ComparedRow| {
        let words = [row.place.as_str(), row.what.as_str()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    };
    let first = width(&mut summary.rows.iter().map(|row| label(row).chars().count())).max(4);
    let columns: Vec<Vec<String>> = (0..summary.systems.len())
        .map(|n| summary.rows.iter().map(|row| cell(row, row.cells[n].as_ref())).collect())
        .collect();
    let heads: Vec<String> = (1..).zip(&summary.systems).map(|(n, system)| head(n, &system.name)).collect();
    let widths: Vec<usize> = columns
        .iter()
        .zip(&heads)
        .map(|(cells, head)| width(&mut cells.iter().map(|c| c.chars().count())).max(head.chars().count()))
        .collect();
    let mut line = format!("{:<first$} {:<12}", "what", "");
    for (name, width) in heads.iter().zip(&widths) {
        line += &format!("  {name:<width$}");
    }
    let mut lines = vec![line.trim_end().to_owned()];
    for (number, row) in summary.rows.iter().enumerate() {
        let mut line = format!("{:<first$} {:<12}", label(row), row.quantity.name());
        for (cells, width) in columns.iter().zip(&widths) {
            line += &format!("  {:<width$}", cells[number]);
        }
        lines.push(line.trim_end().to_owned());
    }
    for (head, system) in heads.iter().zip(&summary.systems).filter(|(head, system)| **head != system.name) {
        let when = if system.created.is_empty() { String::new() } else { format!(", {}", system.created) };
        let source = system.published.as_ref().map(|source| format!("; published: {source}{when}"));
        lines.push(format!("{head} {}{}", system.name, source.unwrap_or_default()));
    }
    lines
}

/// What stands over a system's column.
fn head(number: usize, name: &str) -> String {
    match name.chars().count() > HEAD_CHARACTERS_MAX {
        true => format!("[{number}]"),
        false => name.to_owned(),
    }
}

fn cell(row: &ComparedRow, cell: Option<&ComparedCell>) -> String {
    let Some(cell) = cell else { return "-".to_owned() };
    let noisy = if cell.variation.is_some_and(|variation| variation > NOISY) { "~" } else { "" };
    let median = format!("{}{noisy}", figure(row.quantity, cell.median));
    let Some(beside) = &cell.beside else { return median };
    let mark = match beside.change {
        Change::Better => " +",
        Change::Worse => " -",
        Change::NotShown => " =",
        Change::TooFew => " ?",
        Change::NotJudged => "",
    };
    let interval = match (beside.lower, beside.upper) {
        (Some(lower), Some(upper)) => format!(" [{lower:.3}, {upper:.3}]"),
        _ => String::new(),
    };
    format!("{median} ({:.3}){interval}{mark}", beside.ratio)
}

/// A figure with the unit that suits it.
pub(in crate::verbs) fn figure(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::BytesPerSecond => format!("{:.1} MB/s", value / 1e6),
        Quantity::Bytes => format!("{:.1} MB", value / 1e6),
        Quantity::CpuSecondsPerGb => format!("{value:.3} s/GB"),
        Quantity::CoresBusy => format!("{value:.2} cores"),
        Quantity::Lost => format!("{value:.0}"),
        Quantity::OperationsPerSecond => format!("{value:.0} /s"),
        Quantity::MeanSeconds
        | Quantity::P99Seconds
        | Quantity::MaxSeconds
        | Quantity::SetUpSeconds
        | Quantity::SecondsPerRegister => match value.abs() {
            seconds if seconds < 1e-6 => format!("{:.1} ns", value * 1e9),
            seconds if seconds < 1e-3 => format!("{:.2} us", value * 1e6),
            seconds if seconds < 1.0 => format!("{:.2} ms", value * 1e3),
            _ => format!("{value:.2} s"),
        },
    }
}

fn limit(summary: &CompareSummary) -> Vec<String> {
    let Some(limit) = &summary.limit else { return Vec::new() };
    let mut lines = Vec::new();
    match (limit.failed.len(), limit.open.len()) {
        (0, 0) => lines.push(format!("nothing is below {} of the baseline", limit.below)),
        (failed, open) => {
            lines.push(format!(
                "below {} of the baseline: {failed} shown, {open} not told apart from chance",
                limit.below
            ));
        }
    }
    lines.extend(limit.failed.iter().map(|name| format!("  FAILED  {name}")));
    lines.extend(limit.open.iter().map(|name| format!("  open    {name}")));
    lines
}
