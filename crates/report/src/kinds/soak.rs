//! The page of a bit-error test: what was read back, what was wrong in it, and what follows.

use keepup_results::{SoakCounter, SoakMismatch, SoakPart, SoakSummary, Stored};
use serde_json::json;

use super::common::{self, Found, charts};
use crate::chart::{Axis, Chart, Mark, Series, TEXT, colour, figure, plot, rate_scale, short};
use crate::format::{bytes, digits, number, or_not_measured, plural, rate, seconds};
use crate::page::{Block, Cell, Document, Item, Table, Tone, left, right};

pub(super) fn document(stored: &Stored, summary: &SoakSummary) -> Document {
    let damage = &summary.damage;
    let answer = match (damage.mismatches + damage.references, &summary.rate) {
        (0, None) => ("NOTHING READ BACK".to_owned(), Tone::Doubtful),
        (0, Some(_)) => ("NO ERROR".to_owned(), Tone::Good),
        (mismatches, _) => (plural(mismatches, "MISMATCH").replace("MISMATCHs", "MISMATCHES"), Tone::Bad),
    };
    let totals = &summary.totals;
    let mut sentences = vec![format!(
        "{} read back in {} over {}, {}.",
        plural(totals.files, "file"),
        plural(totals.turns, "turn"),
        plural(summary.sittings, "sitting"),
        seconds(totals.elapsed_ns as f64 / 1e9)
    )];
    sentences.extend(summary.rate.map(|rate| {
        let bit = &rate.mismatches_per_bit;
        match damage.mismatches {
            0 => format!(
                "No error in {}: at 95 % fewer than {:.1e} for each bit.",
                bytes(rate.bytes),
                bit.upper
            ),
            _ => format!(
                "{:.1e} mismatches for each bit ({:.1e} to {:.1e} at 95 %); {} wrong bytes, {} wrong bits.",
                bit.value,
                bit.lower,
                bit.upper,
                number(damage.bytes),
                number(damage.bits)
            ),
        }
    }));
    let mut found = Found {
        answer: Some(answer),
        sentences,
        cautions: summary.notes.clone(),
        loads: summary.loads.clone(),
        ..Found::default()
    };
    found.blocks.extend(charts("The work, part by part", parts(summary)));
    found.blocks.extend(mismatches(&summary.mismatches));
    found.blocks.extend(counters(&summary.counters));
    common::document(stored, found)
}

fn parts(summary: &SoakSummary) -> Option<Chart> {
    let totals = &summary.totals;
    let parts: [(&str, &SoakPart); 4] = [
        ("made or read from the source", &totals.source),
        ("written, with the flush", &totals.write),
        ("read back past the cache", &totals.read),
        ("compared", &totals.compare),
    ];
    let unit = rate_scale(parts.iter().filter_map(|part| part.1.bytes_per_second()).fold(0.0, f64::max));
    let bar = |(_, part): &(&str, &SoakPart)| {
        let value = part.bytes_per_second().map(|value| unit.of(value));
        json!({ "value": figure(value.unwrap_or(f64::NAN)),
            "label": { "show": value.is_some(), "position": "right",
            "formatter": value.map(short).unwrap_or_default(), "color": TEXT, "fontSize": 11 } })
    };
    let series = [Series::new("", colour(0), Mark::Bars, parts.iter().map(bar).collect())];
    let row = |(name, part): &(&str, &SoakPart)| -> Vec<Cell> {
        vec![
            (*name).into(),
            bytes(part.bytes).into(),
            or_not_measured(part.bytes_per_second(), rate).into(),
            or_not_measured(part.cpu_seconds_per_gb(), |cpu| format!("{} s/GB", digits(cpu))).into(),
        ]
    };
    let columns = vec![left("part"), right("bytes"), right("rate"), right("CPU")];
    let has_any = parts.iter().any(|part| part.1.bytes_per_second().is_some());
    has_any.then(|| Chart {
        title: format!("Rate of each part of the work, {}", unit.unit),
        note: String::new(),
        table: Table { columns, rows: parts.iter().map(row).collect() },
        ..plot(
            &Axis::linear(format!("rate, {}", unit.unit)).with_zero(),
            &Axis::category("", parts.iter().map(|part| part.0.to_owned()).collect()).downwards(),
            &series,
            110,
        )
        .with_room_at_right(48)
    })
}

fn mismatches(mismatches: &[SoakMismatch]) -> Option<Block> {
    let row = |mismatch: &SoakMismatch| -> Vec<Cell> {
        let kinds: Vec<String> =
            mismatch.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let first = mismatch
            .ranges
            .first()
            .map(|range| format!("at {}: expected {}, found {}", range.offset, range.expected, range.found));
        vec![
            mismatch.turn.to_string().into(),
            mismatch.file.as_str().into(),
            Cell::toned(number(mismatch.bytes), Tone::Bad),
            number(mismatch.bits).into(),
            kinds.join(", ").into(),
            mismatch.place.map_or_else(|| "unknown".to_owned(), |place| place.to_string()).into(),
            first.unwrap_or_default().into(),
        ]
    };
    let columns = vec![
        right("turn"),
        left("file"),
        right("wrong bytes"),
        right("wrong bits"),
        left("kind"),
        left("where"),
        left("the first"),
    ];
    let rows = mismatches.iter().take(200).map(row).collect();
    (!mismatches.is_empty()).then(|| Block::new("What was wrong", vec![Item::Table(Table { columns, rows })]))
}

fn counters(counters: &[SoakCounter]) -> Option<Block> {
    let row = |counter: &SoakCounter| -> Vec<Cell> {
        let told = |value: Option<u64>| value.map_or_else(|| "not readable".to_owned(), number);
        let has_risen = counter.before.zip(counter.after).is_some_and(|(before, after)| after > before);
        let tone = if has_risen { Tone::Bad } else { Tone::Plain };
        vec![
            counter.name.as_str().into(),
            told(counter.first).into(),
            told(counter.before).into(),
            Cell::toned(told(counter.after), tone),
        ]
    };
    let columns =
        vec![left("counter of errors"), right("before all"), right("before this sitting"), right("after")];
    let rows = counters.iter().map(row).collect();
    (!counters.is_empty()).then(|| {
        Block::new("Errors that kernel and disks counted", vec![Item::Table(Table { columns, rows })])
    })
}
