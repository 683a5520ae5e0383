//! Metrics of several hosts.
use std::collections::BTreeSet;

use keepup_results::live::FleetNow;

use crate::exposition::TextFormat;
use crate::metrics::page;
use crate::testing::{fleet, recording};

#[test]
fn every_figure_of_a_host_has_its_label() {
    let text = page(TextFormat::Prometheus, Some(&recording()), None, Some(&fleet()));
    for line in [
        "keepup_received_bytes_total{host=\"daq1\"} 26214400",
        "keepup_durable_events_total{host=\"daq3\"} 90",
        "keepup_pool_room_seconds{host=\"daq1\"} 2.5",
        "keepup_host_state{host=\"daq2\",role=\"recorder\",state=\"lost\"} 1",
        "keepup_host_state{host=\"daq2\",role=\"recorder\",state=\"recording\"} 0",
        "keepup_host_clock_offset_seconds{host=\"daq1\"} -0.001",
        "keepup_volume_free_bytes{host=\"daq1\",volume=\"/data/a/run\"} 7",
        "keepup_volume_failed{host=\"daq1\",volume=\"/data/a/run\"} 0",
        "keepup_stream_moves_total 1",
        "keepup_run_number 17",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn rejected_data_of_a_host_are_counted_by_reason() {
    let mut now = fleet();
    let has = |now: &FleetNow, line: &str| {
        let text = page(TextFormat::Prometheus, Some(&recording()), None, Some(now));
        text.lines().any(|found| found == line)
    };
    let of_source = "keepup_rejected_total{host=\"daq1\",reason=\"malformed\",foreign=\"false\"} 7";
    let of_stranger = "keepup_rejected_total{host=\"daq1\",reason=\"malformed\",foreign=\"true\"} 3";
    assert!(!has(&now, of_source), "control");
    now.hosts[0].flow.rejected = [("malformed".to_owned(), 7)].into();
    assert!(has(&now, of_source) && !has(&now, of_stranger));
    now.hosts[0].flow.foreign = [("malformed".to_owned(), 3)].into();
    assert!(has(&now, of_source) && has(&now, of_stranger));
}

#[test]
fn names_are_those_of_one_recorder_with_the_same_type() {
    let types = |text: String| -> BTreeSet<String> {
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
    };
    let of_fleet = types(page(TextFormat::OpenMetrics, Some(&recording()), None, Some(&fleet())));
    let moment = crate::testing::moment(1);
    let of_one = types(page(TextFormat::OpenMetrics, Some(&recording()), Some(&moment), None));
    let name = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    for line in &of_fleet {
        let other = of_one.iter().find(|other| name(other) == name(line));
        assert!(other.is_none_or(|other| other == line), "{line} and {other:?}");
    }
    assert!(of_fleet.intersection(&of_one).count() > 12, "{of_fleet:?}");
}

#[test]
fn unknown_figures_of_a_host_are_omitted() {
    let mut now = fleet();
    (now.hosts[0].pool, now.hosts[0].heartbeat_age_seconds) = (None, None);
    let text = page(TextFormat::Prometheus, None, None, Some(&now));
    assert!(
        !text.contains("keepup_pool_bytes{host=\"daq1\"}")
            && text.contains("keepup_pool_bytes{host=\"daq2\"}")
    );
    assert!(!text.contains("keepup_host_heartbeat_age_seconds{host=\"daq1\"}"));
}
