//! Sentences on the path between source and recorder.
use super::*;

fn host() -> SourceHost {
    SourceHost {
        address: "10.0.0.2:7614".into(),
        host: "daq2".into(),
        cpu: Some("Fast CPU @ 3 GHz".into()),
        cores: Some(8),
        tool_version: "0.1.0".into(),
        counters_gap_seconds_max: Some(0.043),
    }
}

#[test]
fn a_source_on_another_machine_is_named_instead_of_loopback() {
    let remote = path(Some(&host()), false);
    assert!(remote.contains("daq2 (Fast CPU @ 3 GHz), reached at 10.0.0.2:7614"), "{remote}");
    assert!(!remote.contains("loopback"), "{remote}");
    let unnamed = path(Some(&SourceHost { cpu: None, ..host() }), false);
    assert!(unnamed.contains("daq2, reached at"), "{unnamed}");
}

#[test]
fn a_second_process_on_this_machine_is_no_network() {
    for host in [None, Some(&host())] {
        assert!(path(host, true).contains("talked over loopback"));
    }
}

#[test]
fn the_time_between_reports_is_a_limit() {
    let sentence = counters_gap(&host()).unwrap();
    assert!(sentence.contains("at least every 43"), "{sentence}");
    assert_eq!(counters_gap(&SourceHost { counters_gap_seconds_max: None, ..host() }), None);
}
