//! The page of a bit-error test: what was read back, what was wrong in it, and what follows.

use keepup_results::{
    SoakCounter, SoakDamage, SoakInterval, SoakMismatch, SoakOrigin, SoakPart, SoakRange, SoakRate,
    SoakSummary, Stored,
};
use serde_json::json;

use super::common::{self, Found};
use crate::chart::{Axis, Chart, Mark, Series, TEXT, colour, figure, plot, rate_scale, short};
use crate::format::{fixed, number, plural, seconds};
use crate::page::{Block, Cell, Document, Item, Table, Tone, left, right};

/// Mismatches that are listed, and stretches of wrong data in them; the result has all.
const MISMATCHES_MAX: usize = 200;
const RANGES_MAX: usize = 400;

pub(super) fn document(stored: &Stored, summary: &SoakSummary) -> Document {
    let damage = &summary.damage;
    let answer = match (damage.mismatches + damage.references, &summary.rate) {
        (0, None) => ("NOTHING READ BACK".to_owned(), Tone::Doubtful),
        (0, Some(_)) => ("NO ERROR".to_owned(), Tone::Good),
        (mismatches, _) => (plural(mismatches, "mismatch").to_uppercase(), Tone::Bad),
    };
    let totals = &summary.totals;
    let mut sentences = vec![format!(
        "{} read back in {} over {}, {}.",
        plural(totals.files, "file"),
        plural(totals.turns, "turn"),
        plural(summary.sittings, "session"),
        seconds(totals.elapsed_ns as f64 / 1e9)
    )];
    sentences.extend(summary.rate.map(|rate| told(&rate, damage)));
    if damage.references > 0 {
        let times = plural(damage.references, "time");
        sentences.push(format!("A reference was read wrongly {times}."));
    }
    let mut found = Found {
        answer: Some(answer),
        sentences,
        cautions: summary.notes.clone(),
        loads: summary.loads.clone(),
        ..Found::default()
    };
    found.blocks.extend(work(summary));
    found.blocks.extend(mismatches(&summary.mismatches));
    found.blocks.extend(counters(&summary.counters));
    common::document(stored, found)
}

/// The rate of errors with its interval, or what it stays below. An error is a stretch of wrong data, so that
/// both are told: for each byte, as the paper has it, and for each bit, as links and memory are rated.
fn told(rate: &SoakRate, damage: &SoakDamage) -> String {
    let (byte, bit) = (&rate.mismatches_per_byte, &rate.mismatches_per_bit);
    let read = number(rate.bytes);
    if damage.mismatches == 0 {
        return format!(
            "No error in {read} bytes read back: error rate below {:.2e} per byte, {:.2e} per bit at 95 % \
             confidence.",
            byte.upper, bit.upper
        );
    }
    let interval = |rate: &SoakInterval| format!("{:.2e} to {:.2e} at 95 %", rate.lower, rate.upper);
    format!(
        "{} in {read} bytes read back: error rate {:.2e} per byte ({}), {:.2e} per bit ({}); {} wrong bytes, \
         {} wrong bits.",
        plural(damage.mismatches, "mismatch"),
        byte.value,
        interval(byte),
        bit.value,
        interval(bit),
        number(damage.bytes),
        number(damage.bits)
    )
}

/// What each part of the work moved, and what it cost.
fn work(summary: &SoakSummary) -> Option<Block> {
    let totals = &summary.totals;
    let parts: [(&str, &SoakPart); 4] = [
        ("made or read from the source", &totals.source),
        ("written and flushed", &totals.write),
        ("read back past the cache", &totals.read),
        ("compared", &totals.compare),
    ];
    if parts.iter().all(|part| part.1.bytes_per_second().is_none()) {
        return None;
    }
    let row = |(name, part): &(&str, &SoakPart)| -> Vec<Cell> {
        vec![
            (*name).into(),
            fixed(Some(part.bytes as f64 / 1e9), 3).into(),
            fixed(part.bytes_per_second().map(|rate| rate / 1e6), 1).into(),
            fixed(part.cpu_seconds_per_gb(), 3).into(),
        ]
    };
    let columns = vec![left("part"), right("GB"), right("rate, MB/s"), right("CPU, s/GB")];
    let table = Table { columns, rows: parts.iter().map(row).collect() };
    let items = [Item::Table(table), common::item(rates(&parts))];
    Some(Block::new("The work, part by part", items.into()))
}

fn rates(parts: &[(&str, &SoakPart)]) -> Chart {
    let unit = rate_scale(parts.iter().filter_map(|part| part.1.bytes_per_second()).fold(0.0, f64::max));
    let bar = |(_, part): &(&str, &SoakPart)| {
        let value = part.bytes_per_second().map(|value| unit.of(value));
        json!({ "value": figure(value.unwrap_or(f64::NAN)),
            "label": { "show": value.is_some(), "position": "right",
            "formatter": value.map(short).unwrap_or_default(), "color": TEXT, "fontSize": 11 } })
    };
    let row = |(name, part): &(&str, &SoakPart)| -> Vec<Cell> {
        vec![(*name).into(), part.bytes_per_second().map_or_else(String::new, |v| short(unit.of(v))).into()]
    };
    let series = [Series::new("", colour(0), Mark::Bars, parts.iter().map(bar).collect())];
    let rate = format!("rate, {}", unit.unit);
    Chart {
        title: format!("Rate of each part of the work, {}", unit.unit),
        table: Table {
            columns: vec![left("part"), right(rate.as_str())],
            rows: parts.iter().map(row).collect(),
        },
        is_told: true,
        ..plot(
            &Axis::linear(rate).with_zero(),
            &Axis::category("", parts.iter().map(|part| part.0.to_owned()).collect()).downwards(),
            &series,
            110,
        )
        .with_room_at_right(48)
    }
}

/// Every mismatch, the stretches of wrong data in it, and what became of it.
fn mismatches(mismatches: &[SoakMismatch]) -> Option<Block> {
    if mismatches.is_empty() {
        return None;
    }
    let drawn = &mismatches[..mismatches.len().min(MISMATCHES_MAX)];
    let row = |mismatch: &SoakMismatch| -> Vec<Cell> {
        let kinds: Vec<String> =
            mismatch.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        vec![
            mismatch.turn.to_string().into(),
            mismatch.file.as_str().into(),
            Cell::toned(number(mismatch.bytes), Tone::Bad),
            number(mismatch.bits).into(),
            kinds.join(", ").into(),
            mismatch.place.map_or_else(|| "unknown".to_owned(), |place| place.to_string()).into(),
            mismatch.way.as_str().into(),
        ]
    };
    let columns = vec![
        right("turn"),
        left("file"),
        right("wrong bytes"),
        right("wrong bits"),
        left("kind"),
        left("where"),
        left("written and read"),
    ];
    let ranges =
        drawn.iter().flat_map(|mismatch| mismatch.ranges.iter().map(|range| of_range(mismatch, range)));
    let heads = vec![
        right("turn"),
        right("offset"),
        right("bytes"),
        right("bits"),
        left("kind"),
        left("expected"),
        left("found"),
        left("xor"),
        left("where this data belongs"),
    ];
    let after = drawn.iter().flat_map(|mismatch| {
        let turn = mismatch.turn;
        let rereads = mismatch.rereads.iter().map(move |reread| format!("turn {turn}, read again {reread}"));
        rereads.chain(mismatch.kept.iter().map(move |kept| format!("turn {turn}, kept as {kept}")))
    });
    let mut items = vec![
        Item::Table(Table { columns, rows: drawn.iter().map(row).collect() }),
        Item::Table(Table { columns: heads, rows: ranges.take(RANGES_MAX).collect() }),
        Item::List(after.take(RANGES_MAX).collect()),
    ];
    let more = mismatches.len() - drawn.len();
    if more > 0 {
        items.push(Item::Text(format!("{more} more are in result.json.")));
    }
    Some(Block::new("What was wrong", items))
}

/// One stretch of wrong data.
fn of_range(mismatch: &SoakMismatch, range: &SoakRange) -> Vec<Cell> {
    let origin = |origin: SoakOrigin| {
        let other = if origin.is_ours { "" } else { "another soak's " };
        format!("{other}file {}, offset {}, generation {}", origin.file, origin.offset, origin.generation)
    };
    vec![
        mismatch.turn.to_string().into(),
        range.offset.to_string().into(),
        range.bytes.to_string().into(),
        range.bits.to_string().into(),
        range.kind.to_string().into(),
        range.expected.as_str().into(),
        range.found.as_str().into(),
        range.xor.as_str().into(),
        range.origin.map(origin).unwrap_or_default().into(),
    ]
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
    let columns = vec![
        left("error counter"),
        right("before the first session"),
        right("before this one"),
        right("after"),
    ];
    let rows = counters.iter().map(row).collect();
    (!counters.is_empty()).then(|| {
        Block::new("Error counters of the kernel and the disks", vec![Item::Table(Table { columns, rows })])
    })
}
