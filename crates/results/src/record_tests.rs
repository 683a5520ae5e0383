//! What a trial's result says of its runs, and that it can be read back.
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::event::Event;
use crate::example::fit;
use crate::summary::Count;
use crate::test::{Begun, TestSummary};

/// 20,000 events of 256 KiB onto two disks, read back.
fn run(repeat: u32, seconds: f64) -> RecordRun {
    let all = Count { events: 20_000, bytes: 20_000 << 18 };
    let moment = |seconds, events: u64| RecordMoment { seconds, events, bytes: events << 18 };
    RecordRun {
        volumes: vec!["/a".into(), "/b".into()],
        repeat,
        begin_seconds: 0.5,
        asked_bytes_per_second: None,
        streams: 4,
        connections: 2,
        event_bytes: 1 << 18,
        placement: RecordPlacement::Pinned,
        to_null: false,
        source_seconds: seconds - 1.0,
        seconds,
        achieved_bytes_per_second: all.bytes as f64 / (seconds - 1.0),
        durable_bytes_per_second: Some(all.bytes as f64 / seconds),
        first: Some(RecordFirst {
            events: 1000,
            received: moment(0.25, 1001),
            durable: Some(moment(0.5, 1600)),
        }),
        ledger: LedgerSummary {
            sent: all,
            received: all,
            written: all,
            durable: all,
            verified: Some(all),
            ..LedgerSummary::default()
        },
        cpu: CpuCost { seconds_per_gb: Some(0.2), per_core_percent: vec![75.0, 50.0], ..CpuCost::default() },
        pool_bytes: 1 << 29,
        pool_bytes_used_max: 1 << 28,
        backlog_bytes_max: Some(1 << 20),
        stall_seconds_max: Some(0.02),
        engine: Some(fit().engine),
        faults: Some(0),
        read_back: Some(RecordReadBack {
            streams: 4,
            events: all.events,
            bytes: all.bytes,
            seconds: 2.0,
            threads: 2,
            cpu_seconds: all.bytes as f64 / 1e9,
            machine_cpu_seconds: None,
        }),
        broken_off: None,
        loads: vec![],
        notes: vec![],
    }
}

fn summary(runs: Vec<RecordRun>) -> RecordSummary {
    let begun = Begun {
        id: "0a1b2c3d".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 0,
        command: "keepup trial csl".into(),
        workload: "record".into(),
        plan: json!({}),
        environment: json!(null),
    };
    RecordSummary { runs, ..RecordSummary::begun(&begun) }
}

fn values(summary: &RecordSummary, what: &str, quantity: Quantity) -> Vec<f64> {
    let figures = summary.figures();
    let mut found =
        figures.iter().filter(|figure| (figure.what.as_str(), figure.quantity) == (what, quantity));
    let values = found.next().map(|figure| figure.values.clone()).unwrap_or_default();
    assert_eq!(found.next(), None, "each figure once");
    values
}

#[test]
fn a_result_and_its_event_come_back() {
    let summary = summary(vec![run(1, 5.0), run(2, 4.0)]);
    let text = serde_json::to_string(&summary).unwrap();
    assert_eq!(serde_json::from_str::<RecordSummary>(&text).unwrap(), summary);
    let event = Event::RecordRun { t_unix_ns: 1, run: Box::new(run(1, 5.0)) };
    let line = serde_json::to_string(&event).unwrap();
    assert!(line.starts_with(r#"{"event":"record_run","#) && !line.contains('\n'), "{line}");
    assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    let mut foreign = serde_json::to_value(&summary).unwrap();
    foreign["runs"][0]["speed"] = json!(1);
    assert!(serde_json::from_value::<RecordSummary>(foreign).is_err(), "unknown keys are refused");
}

#[test]
fn figures_have_one_value_for_each_repeat() {
    let summary = summary(vec![run(1, 5.0), run(2, 4.0)]);
    let bytes = (20_000u64 << 18) as f64;
    assert_eq!(values(&summary, "record", Quantity::BytesPerSecond), [bytes / 5.0, bytes / 4.0]);
    assert_eq!(values(&summary, "record", Quantity::CoresBusy), [1.25, 1.25]);
    assert_eq!(values(&summary, "record", Quantity::Lost), [0.0, 0.0]);
    let received = f64::from(1001u32 << 18) / 0.25;
    assert_eq!(values(&summary, "first 1000 received", Quantity::BytesPerSecond), [received; 2]);
    assert_eq!(values(&summary, "first 1000 durable", Quantity::BytesPerSecond).len(), 2);
    assert_eq!(values(&summary, "read back", Quantity::BytesPerSecond), [bytes / 2.0; 2]);
    assert_eq!(values(&summary, "read back", Quantity::CpuSecondsPerGb), [1.0; 2]);
    assert!(summary.figures().iter().all(|figure| figure.place == "/a + /b"));
}

#[test]
fn without_disks_the_rate_is_what_was_received_and_nothing_is_durable() {
    let null = RecordRun {
        volumes: vec![],
        to_null: true,
        durable_bytes_per_second: None,
        first: None,
        read_back: None,
        ..run(1, 5.0)
    };
    let received = null.achieved_bytes_per_second;
    let summary = summary(vec![null]);
    assert_eq!(values(&summary, "record", Quantity::BytesPerSecond), [received]);
    assert!(values(&summary, "first 1000 durable", Quantity::BytesPerSecond).is_empty());
    assert!(values(&summary, "read back", Quantity::BytesPerSecond).is_empty());
    assert_eq!(summary.figures()[0].place, "no disk");
    let written = serde_json::to_value(&summary).unwrap();
    assert_eq!(written["runs"][0]["durable_bytes_per_second"], Value::Null);
}

#[test]
fn a_run_is_whole_only_when_nothing_is_missing_anywhere() {
    let good = run(1, 5.0);
    assert!(good.is_whole());
    let one = Count { events: 1, bytes: 1 << 18 };
    let lost = LedgerSummary {
        lost: one,
        lost_by_cause: BTreeMap::from([("lost at source".to_owned(), one)]),
        ..good.ledger.clone()
    };
    let short = good.read_back.clone().map(|read| RecordReadBack { events: read.events - 1, ..read });
    let bad = [
        RecordRun { ledger: lost, ..good.clone() },
        RecordRun { faults: Some(1), ..good.clone() },
        RecordRun { broken_off: Some("no volume".into()), ..good.clone() },
        RecordRun { read_back: short, ..good.clone() },
    ];
    assert!(bad.iter().all(|run| !run.is_whole()));
    assert!(RecordRun { faults: None, read_back: None, ..good }.is_whole(), "not asked for");
}
