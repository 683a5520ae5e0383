//! Rows of another machine stand in the table of the same title.
use std::path::Path;

use keepup_results::{PaperCell, PaperColumn, PaperRow, TestSummary as _};

use super::*;
use crate::testing::begun;

fn page(machine: &str, rate: f64) -> PaperPage {
    let row = |name: &str, is_here, value| PaperRow {
        name: name.into(),
        is_here,
        cells: vec![PaperCell::published(value)],
        note: None,
    };
    PaperPage {
        name: "esrf-2007".into(),
        machine: machine.into(),
        scale: 1.0,
        tables: vec![PaperTable {
            title: "Results".into(),
            stands: "table 1".into(),
            head: "system".into(),
            columns: vec![PaperColumn::new("write", "MiB/s")],
            rows: vec![row("published", false, 100.0), row("this machine, /data/a", true, rate)],
        }],
        ..PaperPage::default()
    }
}

fn stored(directory: &Path, name: &str, paper: Option<PaperPage>) -> StoredResult {
    let mut summary = keepup_results::CampaignSummary::begun(&begun());
    summary.paper = paper;
    let path = directory.join(name);
    std::fs::write(&path, serde_json::to_string(&summary).unwrap()).unwrap();
    StoredResult::open(&path).unwrap()
}

#[test]
fn another_machine_is_a_row_and_other_papers_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let other = PaperPage { scale: 0.5, ..page("machine b", 300.0) };
    let strange = PaperPage { name: "romanis".into(), ..page("machine c", 400.0) };
    let with = [
        stored(directory.path(), "b.json", Some(other)),
        stored(directory.path(), "c.json", Some(strange)),
        stored(directory.path(), "d.json", None),
    ];
    let mut page = page("machine a", 200.0);
    add_rows(&mut page, &with);
    let names: Vec<&str> = page.tables[0].rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["published", "this machine, /data/a", "machine b: /data/a"]);
    assert_eq!(page.tables[0].rows[2].cells[0].value, Some(300.0));
    assert_eq!(page.limits, ["the rows of machine b are of scale 0.5"]);
    let esrf = crate::reproduction("esrf-2007").unwrap();
    let why = |result| Cause::of(&check_result_of_other(esrf, result).unwrap_err()).to_text();
    assert!(check_result_of_other(esrf, &with[0]).is_ok());
    assert!(why(&with[1]).contains("c.json: it reproduces romanis"), "{}", why(&with[1]));
    assert!(why(&with[2]).contains("d.json: it reproduces no paper"), "{}", why(&with[2]));
}
