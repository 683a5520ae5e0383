//! Loads over several runs.

use keepup_results::{LoadKind, LoadResult, LoadUnit};

use super::block;
use crate::page::Item;

fn load(spec: &str, asked: f64, achieved: f64) -> LoadResult {
    LoadResult {
        spec: spec.into(),
        kind: LoadKind::Net,
        unit: LoadUnit::BytesPerSecond,
        asked,
        achieved: Some(achieved),
        seconds: 2.0,
        cpu_seconds: Some(0.5),
        step_seconds: 0.1,
        series: Vec::new(),
        fell_short: achieved < 0.99 * asked,
        failure: None,
        notes: Vec::new(),
    }
}

#[test]
fn each_load_has_one_row_and_the_runs_in_which_it_fell_short_are_named() {
    let runs = [
        load("net=5 MB/s", 5e6, 5e6),
        load("net=9 MB/s", 9e6, 9e6),
        load("net=5 MB/s", 5e6, 4e6),
        load("net=9 MB/s", 9e6, 9e6),
        load("net=5 MB/s", 5e6, 5e6),
        LoadResult { failure: Some("killed\nby somebody".into()), ..load("net=9 MB/s", 9e6, 9e6) },
    ];
    let block = block(&runs).unwrap();
    let [Item::Table(table), Item::List(problems)] = &block.items[..] else { panic!("{}", block.title) };
    let rows: Vec<Vec<&str>> =
        table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect();
    assert_eq!(
        rows,
        [
            ["net=5 MB/s", "3", "5.00 MB/s", "5.00 MB/s", "4.00 MB/s", "0.25", "fell short"],
            ["net=9 MB/s", "3", "9.00 MB/s", "9.00 MB/s", "9.00 MB/s", "0.25", "ended early"],
        ]
    );
    assert_eq!(
        problems[..],
        [
            "load net=5 MB/s fell short in run 2: 80.0 % of what was asked",
            "load net=9 MB/s ended in run 3: killed",
        ]
    );
}

#[test]
fn without_loads_nothing_is_said() {
    assert!(block(&[]).is_none());
}
