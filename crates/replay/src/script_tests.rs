//! Selection and mapping of requests.
use keepup_error::Cause;
use keepup_trace::Hints;

use super::*;
use crate::testing::{Row, script, trace};

const MIB: u64 = 1 << 20;

fn choice() -> ScriptOptions {
    ScriptOptions { block_bytes: 4096, ..ScriptOptions::default() }
}

fn times(script: &Script) -> Vec<(u64, u64)> {
    let us = |ns: u64| ns / 1000;
    script.records.iter().map(|r| (us(r.issue_ns), us(r.completion_ns().unwrap()))).collect()
}

#[test]
fn what_it_is_is_counted() {
    let rows = [(5, 'R', 0, 4096, 10), (10, 'W', 5 * MIB, 512, 20), (40, 'R', 4096, 8192, 5)];
    let script = script(&rows);
    let summary = &script.summary;
    assert_eq!((summary.records, summary.reads, summary.writes, summary.flushes), (3, 2, 1, 0));
    assert_eq!((summary.bytes_read, summary.bytes_written), (12_288, 4096));
    assert_eq!(times(&script), [(0, 10), (5, 25), (35, 40)]);
    assert!((summary.span_seconds - 35e-6).abs() < 1e-9);
    let cost = script.cost(0..script.target_bytes);
    assert_eq!((cost, script.target_bytes), (Cost { filled: 2 * MIB, written: 4096, refilled: 0 }, 6 * MIB));
    assert_eq!(script.cost(5 * MIB..6 * MIB), Cost { filled: MIB, written: 4096, refilled: 0 });
    assert_eq!(script.touched().collect::<Vec<_>>(), [(0, MIB), (5 * MIB, MIB)]);
    assert_eq!((script.median_gap_ns(), script.longest()), (30_000, 8192));
}

#[test]
fn a_part_of_the_time_begins_at_nothing() {
    let rows: Vec<Row> = (0..100).map(|n| (n * 1000, 'R', n * 4096, 4096, 10)).collect();
    let load = |choice: ScriptOptions| Script::load("made", trace(&rows), &choice).unwrap();
    let part = load(ScriptOptions { from_ns: 10_500_000, until_ns: Some(20_000_000), ..choice() });
    assert_eq!((part.summary.records, part.summary.is_cut), (9, true));
    assert_eq!((times(&part)[0], part.records[0].offset), ((0, 10), 11 * 4096));
    let first = load(ScriptOptions { records_max: Some(7), ..choice() });
    assert_eq!((first.summary.records, first.summary.is_cut), (7, true));
    assert!(!load(choice()).summary.is_cut);
}

#[test]
fn pauses_are_shortened_and_the_order_of_ends_stays() {
    // The first is in flight through the whole pause; the third completes within the next.
    let rows = [
        (0, 'R', 0, 4096, 2_000_000),
        (10, 'R', 0, 4096, 100),
        (1_000_000, 'R', 0, 4096, 5),
        (3_000_000, 'W', 0, 4096, 5),
    ];
    let choice = ScriptOptions { gap_max_ns: Some(100_000_000), ..choice() };
    let script = Script::load("made", trace(&rows), &choice).unwrap();
    assert_eq!(
        times(&script),
        [(0, 200_010), (10, 110), (100_010, 100_015), (200_010, 200_015)],
        "the end of the first lies before the last, as it did"
    );
    assert!((script.summary.shortened_seconds - (0.89999 + 1.9)).abs() < 1e-9);
}

#[test]
fn devices_lie_one_behind_the_other() {
    let text = "128166372000000000,a,0,Read,1048576,4096,5\n128166372000000100,a,1,Read,0,4096,5\n\
                128166372000000200,b,0,Write,8192,4096,5\n";
    let open = || Trace::from_bytes("made", text.into(), &Hints::default(), None).unwrap();
    let script = Script::load("made", open(), &choice()).unwrap();
    let places: Vec<u64> = script.records.iter().map(|record| record.offset).collect();
    assert_eq!(places, [MIB, 2 * MIB, 3 * MIB + 8192]);
    assert_eq!(script.target_bytes, 4 * MIB);
}

#[test]
fn impossible_selections_are_refused() {
    let rows = [(0, 'W', 0, 4096, 1), (1, 'R', 50 * MIB, 4096, 1)];
    let why = |choice: ScriptOptions| {
        Cause::of(&Script::load("made", trace(&rows), &choice).unwrap_err()).to_text()
    };
    let small = ScriptOptions { target_bytes: Some(10 * MIB), ..choice() };
    assert!(why(small.clone()).contains("--map clip, wrap or scale"), "{}", why(small));
    let late = ScriptOptions { from_ns: 1_000_000_000, ..choice() };
    assert!(why(late.clone()).contains("no request is left"), "{}", why(late));
    let far = [(0, 'R', 1 << 50, 4096, 1)];
    let far = Cause::of(&Script::load("made", trace(&far), &choice()).unwrap_err()).to_text();
    assert!(far.contains("would need 1125.9 TB") && far.contains("hint: --map wrap"), "{far}");
    let last = (1_u64 << 62) - 4096;
    let wide = format!("128166372000000000,a,0,Read,{last},4096,5\n128166372000000100,a,1,Read,0,4096,5\n");
    let wide = Trace::from_bytes("made", wide.into(), &Hints::default(), None).unwrap();
    let wrapped = ScriptOptions { policy: Policy::Wrap, target_bytes: Some(MIB), ..choice() };
    let why = Cause::of(&Script::load("made", wide, &wrapped).unwrap_err()).to_text();
    assert!(why.contains("span more than") && why.contains("hint: --device"), "{why}");
    let reads = ScriptOptions { reads_only: true, ..choice() };
    let script = Script::load("made", trace(&rows), &reads).unwrap();
    assert_eq!((script.summary.records, script.summary.writes_left_out), (1, 1));
}

#[test]
fn long_requests_are_left_out_and_counted() {
    let rows = [(0, 'R', 0, 65 * MIB, 1), (1, 'R', 0, 63 * MIB, 1)];
    let script = script(&rows);
    assert_eq!((script.summary.records, script.summary.too_long_left_out), (1, 1));
}

/// Output of blkparse: a write with FUA and a flush before it, a discard, a flush, and a read.
const ORDERED: &str = "\
  8,0    1        1     0.000000000   697  Q FWFS 80 + 8 [x]
  8,0    1        2     0.000100000   697  Q   D 0 + 4096 [fstrim]
  8,0    1        3     0.000200000   697  Q  FN [x]
  8,0    1        4     0.000300000   697  Q   R 8192 + 8 [x]
";

#[test]
fn discards_and_ordered_writes_are_kept() {
    let open = || Trace::from_bytes("made", ORDERED.into(), &Hints::default(), None).unwrap();
    let script = Script::load("made", open(), &choice()).unwrap();
    let summary = &script.summary;
    assert_eq!((summary.records, summary.writes, summary.reads, summary.flushes), (4, 1, 1, 1));
    assert_eq!((summary.discards, summary.bytes_discarded, summary.ordered_writes), (1, 2 * MIB, 1));
    assert_eq!((summary.discards_left_out, summary.orders_not_kept), (0, 0));
    assert_eq!(script.longest(), 4096, "a discard needs no buffer");
    // Extent 0 is written and discarded, extent 1 only discarded, extent 4 only read.
    assert_eq!(script.touched().collect::<Vec<_>>(), [(0, MIB), (4 * MIB, MIB)]);
    assert_eq!((script.refilled(), script.cost(0..8 * MIB).refilled), (vec![(0, MIB)], MIB));
    let reads = ScriptOptions { reads_only: true, ..choice() };
    let script = Script::load("made", open(), &reads).unwrap();
    assert_eq!((script.summary.discards_left_out, script.summary.writes_left_out), (1, 2));
}

#[test]
fn requests_that_exceed_the_memory_are_the_same_from_a_file() {
    let rows: Vec<Row> = (0..5000)
        .map(|n| {
            (
                n * 1000 + n / 100 * 1_000_000,
                if n % 3 == 0 { 'W' } else { 'R' },
                n * 7919 % 977 * 4096,
                4096,
                10,
            )
        })
        .collect();
    let load = |elements| {
        let in_memory = Some(SpillLimit { elements, directory: Some(std::env::temp_dir()) });
        let choice = ScriptOptions { gap_max_ns: Some(100_000_000), in_memory, ..choice() };
        Script::load("made", trace(&rows), &choice).unwrap()
    };
    let (memory, file) = (load(usize::MAX), load(10));
    assert_eq!((memory.records.spilled_bytes(), file.records.spilled_bytes()), (0, 5000 * 32));
    assert_eq!(&memory.records[..], &file.records[..]);
    assert_eq!(
        (memory.summary.clone(), memory.median_gap_ns()),
        (file.summary.clone(), file.median_gap_ns())
    );
    assert!(memory.summary.shortened_seconds > 40.0, "the pauses are cut in both");
}
