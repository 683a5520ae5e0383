//! Which metrics there are, and that their names keep to the conventions.
use std::collections::BTreeSet;

use super::{STREAMS_MAX, page};
use crate::exposition::Form;
use crate::testing::{moment, recording};

#[test]
fn names_say_their_unit_and_nobody_is_told_of_twice() {
    let text = page(Form::OpenMetrics, Some(&recording()), Some(&moment(3)));
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
fn a_figure_that_nobody_knows_is_left_out() {
    let mut seen = moment(1);
    let has = |text: &str, name: &str| text.contains(&format!("# TYPE {name} "));
    let text = page(Form::Prometheus, None, Some(&seen));
    assert!(has(&text, "keepup_pool_room_seconds") && !has(&text, "keepup_volume_free_bytes"));
    seen.pool.room_seconds = None;
    seen.volumes[0].free_bytes = Some(7);
    let text = page(Form::Prometheus, None, Some(&seen));
    assert!(!has(&text, "keepup_pool_room_seconds") && has(&text, "keepup_volume_free_bytes"));
}

#[test]
fn threads_that_reduce_are_told_one_by_one_where_there_are_some() {
    let mut seen = moment(1);
    let text = page(Form::Prometheus, None, Some(&seen));
    assert!(text.contains("keepup_reduction_busy_ratio{thread=\"1\"} 0.25\n"), "{text}");
    seen.reduction = None;
    assert!(!page(Form::Prometheus, None, Some(&seen)).contains("reduc"));
}

#[test]
fn run_control_stands_in_one_state() {
    let text = page(Form::OpenMetrics, Some(&recording()), None);
    let states: Vec<&str> = text.lines().filter(|line| line.starts_with("keepup_run_state{")).collect();
    assert_eq!(states.len(), 7);
    assert_eq!(states.iter().filter(|line| line.ends_with(" 1")).count(), 1);
    assert!(text.contains("keepup_run_state{state=\"recording\"} 1\n"));
    assert!(text.contains("keepup_run_number 17\n"));
}

#[test]
fn a_flood_of_streams_is_not_passed_on() {
    let text = page(Form::Prometheus, None, Some(&moment(STREAMS_MAX as u32 + 100)));
    let told = text.lines().filter(|line| line.starts_with("keepup_stream_received_events_total{")).count();
    assert_eq!(told, STREAMS_MAX);
    assert!(text.contains("keepup_streams 1124\n"), "how many there are is told");
}
