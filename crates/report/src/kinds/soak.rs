//! Page of a bit-error test: data read back, mismatches and the error rate.

use keepup_results::{
    EVIDENCE_SECONDS_MIN, SoakCounter, SoakDamage, SoakInterval, SoakMismatch, SoakOrigin, SoakPart,
    SoakRange, SoakRate, SoakSummary, Stored,
};
use serde_json::json;

use super::common::{self, PageContent};
use crate::chart::{Axis, Chart, Mark, Series, TEXT, colour, figure, plot, rate_scale, short};
use crate::format::{fixed, number, plural, seconds};
use crate::page::{Block, Document, Item};
use crate::table::{Cell, Table, Tone, left, right};

/// Most mismatches listed, and most ranges of wrong data in them.
const MISMATCHES_MAX: usize = 200;
const RANGES_MAX: usize = 400;

pub(super) fn document(stored: &Stored, summary: &SoakSummary) -> Document {
    let damage = &summary.damage;
    let totals = &summary.totals;
    let answer = match (damage.mismatches + damage.references, &summary.rate) {
        (0, None) => ("NOTHING READ BACK".to_owned(), Tone::Doubtful),
        (0, Some(_)) if (totals.elapsed_ns as f64) < EVIDENCE_SECONDS_MIN * 1e9 => {
            ("TOO SHORT".to_owned(), Tone::Doubtful)
        }
        (0, Some(_)) => ("NO ERROR".to_owned(), Tone::Good),
        (mismatches, _) => (plural(mismatches, "mismatch").to_uppercase(), Tone::Bad),
    };
    let mut sentences = vec![format!(
        "{} read back in {} over {}, {}.",
        plural(totals.files, "file"),
        plural(totals.turns, "turn"),
        plural(summary.sittings, "session"),
        seconds(totals.elapsed_ns as f64 / 1e9)
    )];
    sentences.extend(summary.rate.map(|rate| error_rate(&rate, damage)));
    if damage.references > 0 {
        let times = plural(damage.references, "time");
        sentences.push(format!("A reference file was read back with errors {times}."));
    }
    let mut content = PageContent {
        answer: Some(answer),
        sentences,
        cautions: summary.notes.clone(),
        loads: summary.loads.clone(),
        ..PageContent::default()
    };
    content.blocks.extend(work(summary));
    content.blocks.extend(mismatches(&summary.mismatches));
    content.blocks.extend(counters(&summary.counters));
    common::document(stored, content)
}

/// Error rate with its interval, or its upper bound. Stated per byte, as in the paper, and per bit, as for
/// links and memory.
fn error_rate(rate: &SoakRate, damage: &SoakDamage) -> String {
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

/// Bytes, rate and CPU cost of each part of the work.
fn work(summary: &SoakSummary) -> Option<Block> {
    let totals = &summary.totals;
    let parts: [(&str, &SoakPart); 4] = [
        ("generated or read from the source", &totals.source),
        ("written and flushed", &totals.write),
        ("read back, bypassing the cache", &totals.read),
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
    Some(Block::new("Parts of the work", items.into()))
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
        is_in_table: true,
        ..plot(
            &Axis::linear(rate).with_zero(),
            &Axis::category("", parts.iter().map(|part| part.0.to_owned()).collect()).reversed(),
            &series,
            110,
        )
        .with_right_margin(48)
    }
}

/// Mismatches, their ranges of wrong data, and the copies kept.
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
        left("origin of the data"),
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
    Some(Block::new("Mismatches", items))
}

/// Row of a range of wrong data.
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
        let text = |value: Option<u64>| value.map_or_else(|| "not readable".to_owned(), number);
        let has_risen = counter.before.zip(counter.after).is_some_and(|(before, after)| after > before);
        let tone = if has_risen { Tone::Bad } else { Tone::Plain };
        vec![
            counter.name.as_str().into(),
            text(counter.first).into(),
            text(counter.before).into(),
            Cell::toned(text(counter.after), tone),
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
