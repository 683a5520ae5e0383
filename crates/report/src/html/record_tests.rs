//! Records as rows.

use serde_json::{Value, json};

use super::{collect, folded};

fn rows(record: &Value) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    collect("", record, &mut rows);
    rows
}

#[test]
fn a_record_becomes_a_row_for_each_value() {
    let record = json!({
        "cpu": { "model": { "value": "X <5>" }, "cores": [1, 2], "smt": true },
        "volumes": [{ "path": "/data" }, { "device": { "not_readable": "no such file" } }],
        "speed": null,
    });
    let expected = [
        ("cpu / cores", "1, 2"),
        ("cpu / model", "X <5>"),
        ("cpu / smt", "yes"),
        ("speed", "unknown"),
        ("volumes / 1 / path", "/data"),
        ("volumes / 2 / device", "not readable: no such file"),
    ];
    let expected: Vec<(String, String)> = expected.map(|(a, b)| (a.into(), b.into())).into();
    assert_eq!(rows(&record), expected);
    assert!(folded("Environment", &record).into_string().contains("X &lt;5&gt;"));
}

#[test]
fn a_record_without_end_is_cut() {
    let many: Vec<Value> = (0..5000).map(|n| json!({ "n": n })).collect();
    assert_eq!(rows(&json!(many)).len(), super::ROWS_MAX);
}
