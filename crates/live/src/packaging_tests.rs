//! The packaged dashboard and alerts use existing metrics.
use std::collections::BTreeSet;
use std::path::Path;

use keepup_results::live::{CoreNow, Drained, Flow, Margin, Moment, RunStatus, StreamNow, VolumeNow};
use keepup_results::{Count, FailedRate};
use serde_json::Value;

use crate::exposition::TextFormat;
use crate::testing::{moment, recording, rejected};

fn packaged(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Figures with every optional value present.
fn whole() -> (RunStatus, Moment) {
    let known = moment(2);
    let flow = Flow {
        drained: Some(Drained { events: 1, ..Drained::default() }),
        missing: [("sender".to_owned(), 1)].into(),
        rejected: vec![rejected(false)],
        ..known.flow.clone()
    };
    let volume = VolumeNow {
        path: "/data/a".into(),
        free_bytes: Some(1),
        total_bytes: Some(2),
        ..VolumeNow::default()
    };
    let failed = FailedRate { bytes_per_second: 2.0, seconds: 1.0, lost_events: 1, condition: String::new() };
    let stream = StreamNow { durable: Count { events: 1, bytes: 1 }, ..StreamNow::default() };
    let moment = Moment {
        flow,
        volumes: vec![volume],
        cores: vec![CoreNow::default()],
        process_cores: Some(0.5),
        margin: Some(Margin { failed_above: Some(failed), ..Margin::default() }),
        streams: vec![stream],
        ..known
    };
    (recording(), moment)
}

/// Names of the samples in /metrics, in Prometheus' storage format.
fn names() -> BTreeSet<String> {
    let (run, moment) = whole();
    let page = crate::metrics::page(TextFormat::OpenMetrics, Some(&run), Some(&moment), None);
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.split(['{', ' ']).next()).map(str::to_owned).collect()
}

/// Words of a text that start like a keepup metric.
fn asked(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("keepup_")).map(str::to_owned).collect()
}

fn expressions(value: &Value, all: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(text) if name == "expr" || name == "query" => all.push(text.to_owned()),
                    _ => expressions(member, all),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, all)),
        _ => {}
    }
}

#[test]
fn the_dashboard_uses_existing_metrics_and_most_of_them() {
    let dashboard: Value = serde_json::from_str(&packaged("grafana/keepup.json")).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let (asked, names) = (asked(&all.join(" ")), names());
    let unknown: Vec<_> = asked.difference(&names).collect();
    assert!(unknown.is_empty(), "not among the metrics: {unknown:?}");
    assert!(2 * asked.len() > names.len(), "{} of {} are shown", asked.len(), names.len());
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "panel ids are unique");
}

#[test]
fn the_alerts_use_existing_metrics() {
    let (rules, mut names) = (asked(&packaged("prometheus/keepup.rules.yml")), names());
    let of_fleet = crate::metrics::page(TextFormat::OpenMetrics, None, None, Some(&crate::testing::fleet()));
    names.extend(asked(&of_fleet));
    let unknown: Vec<_> = rules.difference(&names).collect();
    assert!(rules.len() > 8 && unknown.is_empty(), "not among the metrics: {unknown:?}");
}
