//! Available metrics and their naming conventions.
use std::collections::BTreeSet;

use keepup_results::FailedRate;
use keepup_results::live::{Margin, RejectedNow};

use super::{STREAMS_MAX, page};
use crate::exposition::TextFormat;
use crate::testing::{moment, recording, rejected};

#[test]
fn names_have_their_unit_and_families_are_unique() {
    let text = page(TextFormat::OpenMetrics, Some(&recording()), Some(&moment(3)), None);
    let mut families = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, _) = line.split_once(' ').unwrap();
        assert!(name.starts_with("keepup_") && !name.ends_with("_total"), "{name}");
        assert!(families.insert(name.to_owned()), "{name} comes twice");
    }
    for line in text.lines().filter_map(|line| line.strip_prefix("# UNIT ")) {
        let (name, unit) = line.split_once(' ').unwrap();
        assert!(name.ends_with(&format!("_{unit}")), "{name} has the unit {unit}");
    }
    assert!(families.len() > 30, "{families:?}");
}

#[test]
fn an_unknown_figure_is_omitted() {
    let mut seen = moment(1);
    let has = |text: &str, name: &str| text.contains(&format!("# TYPE {name} "));
    let text = page(TextFormat::Prometheus, None, Some(&seen), None);
    assert!(has(&text, "keepup_pool_room_seconds") && !has(&text, "keepup_volume_free_bytes"));
    seen.pool.room_seconds = None;
    seen.volumes[0].free_bytes = Some(7);
    let text = page(TextFormat::Prometheus, None, Some(&seen), None);
    assert!(!has(&text, "keepup_pool_room_seconds") && has(&text, "keepup_volume_free_bytes"));
}

#[test]
fn both_ends_of_the_qualification_are_exported() {
    let mut seen = moment(1);
    let margin = Margin { qualified_bytes_per_second: 1.43e9, used: 1.05, ..Margin::default() };
    let failed = FailedRate {
        bytes_per_second: 1.61e9,
        seconds: 30.0,
        lost_events: 51,
        condition: "events were lost".into(),
    };
    seen.margin = Some(Margin { failed_above: Some(failed), ..margin.clone() });
    let text = page(TextFormat::Prometheus, None, Some(&seen), None);
    assert!(text.contains("keepup_qualified_rate 1430000000\n"), "{text}");
    assert!(text.contains("keepup_qualified_failed_rate 1610000000\n"), "{text}");
    seen.margin = Some(margin);
    let text = page(TextFormat::Prometheus, None, Some(&seen), None);
    assert!(text.contains("keepup_qualified_rate ") && !text.contains("keepup_qualified_failed_rate"));
}

#[test]
fn reducer_threads_have_individual_metrics() {
    let mut seen = moment(1);
    let text = page(TextFormat::Prometheus, None, Some(&seen), None);
    assert!(text.contains("keepup_reduction_busy_ratio{thread=\"1\"} 0.25\n"), "{text}");
    seen.reduction = None;
    assert!(!page(TextFormat::Prometheus, None, Some(&seen), None).contains("reduc"));
}

#[test]
fn run_control_has_one_state() {
    let text = page(TextFormat::OpenMetrics, Some(&recording()), None, None);
    let states: Vec<&str> = text.lines().filter(|line| line.starts_with("keepup_run_state{")).collect();
    assert_eq!(states.len(), 7);
    assert_eq!(states.iter().filter(|line| line.ends_with(" 1")).count(), 1);
    assert!(text.contains("keepup_run_state{state=\"recording\"} 1\n"));
    assert!(text.contains("keepup_run_number 17\n"));
}

#[test]
fn too_many_streams_have_no_individual_metrics() {
    let text = page(TextFormat::Prometheus, None, Some(&moment(STREAMS_MAX as u32 + 100)), None);
    let streams_shown =
        text.lines().filter(|line| line.starts_with("keepup_stream_received_events_total{")).count();
    assert_eq!(streams_shown, STREAMS_MAX);
    assert!(text.contains("keepup_streams 1124\n"), "the number of streams is exported");
}

#[test]
fn rejected_data_are_counted_by_source_and_reason() {
    let mut moment = moment(1);
    moment.flow.rejected = vec![rejected(false), rejected(true)];
    // Another unit of the same source and reason.
    moment.flow.rejected.push(RejectedNow { unit: "heap".into(), count: 4, ..rejected(false) });
    let text = page(TextFormat::Prometheus, None, Some(&moment), None);
    for line in [
        "# TYPE keepup_rejected_total counter",
        "keepup_rejected_total{source=\"udp://0.0.0.0:4001\",reason=\"malformed\",foreign=\"false\"} 7",
        "keepup_rejected_total{source=\"udp://0.0.0.0:4001\",reason=\"malformed\",foreign=\"true\"} 3",
    ] {
        assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{line} is not once in\n{text}");
    }
}
