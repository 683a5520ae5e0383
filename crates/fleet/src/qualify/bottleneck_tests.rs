//! Which host is named, and when none is.
use keepup_qualify::bottleneck::VolumeEvidence;

use super::*;

/// Evidence of a full volume.
fn volume() -> Evidence {
    let volumes = vec![VolumeEvidence { path: "/b".to_owned(), full: 0.9, ..VolumeEvidence::default() }];
    Evidence { volumes, failed: true, ..Evidence::default() }
}

/// Evidence of a network that throttles the source.
fn network() -> Evidence {
    Evidence { source_blocked: 0.5, failed: true, ..Evidence::default() }
}

fn case(host: &str, failed: bool, evidence: Evidence, alone: Option<f64>) -> Case {
    Case {
        host: host.to_owned(),
        source: "s0:1".to_owned(),
        rate: 50e6,
        of_all: if failed { 90e6 } else { 100e6 },
        failed: failed.then(|| "the backlog grew".to_owned()),
        source_short: false,
        evidence: vec![evidence],
        alone,
    }
}

#[test]
fn the_host_that_failed_is_named_with_its_stage() {
    let cases = [case("daq1", false, Evidence::default(), None), case("daq2", true, volume(), None)];
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!(found.stage, "host daq2, volume /b");
    assert_eq!(found.hosts, ["daq2"]);
    assert!(found.evidence.starts_with("at 100 MB/s of all recorders, the backlog grew on daq2: its queue"));
}

#[test]
fn the_slowest_of_hosts_with_different_stages_is_named() {
    let mut cases = [case("daq1", true, network(), None), case("daq2", true, volume(), None)];
    cases[1].of_all = 60e6;
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!((found.stage.as_str(), found.hosts), ("host daq2, volume /b", vec!["daq2".to_owned()]));
}

#[test]
fn hosts_that_fail_alike_are_named_together() {
    let cases = ["daq1", "daq2"].map(|host| case(host, true, network(), None));
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!(found.stage, "hosts daq1 and daq2, network");
    assert!(found.evidence.contains("use --each to distinguish the links"), "{}", found.evidence);
    // Each fails at its own knee, so nothing else is to be told.
    let cases = ["daq1", "daq2"].map(|host| case(host, true, network(), Some(49e6)));
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!(found.stage, "hosts daq1 and daq2, network");
    assert!(!found.evidence.contains("--each"), "{}", found.evidence);
}

#[test]
fn recorders_below_their_own_knee_leave_switch_or_sources() {
    let cases = ["daq1", "daq2"].map(|host| case(host, true, network(), Some(95e6)));
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!((found.stage.as_str(), found.hosts.len()), ("switch or sources", 0));
    assert!(found.evidence.contains("was below its own knee"), "{}", found.evidence);
    assert!(found.evidence.contains("daq1 50.0 MB/s of 95.0 MB/s alone"), "{}", found.evidence);
    // Two searches differ as much as 50 and 55 MB/s.
    let cases = ["daq1", "daq2"].map(|host| case(host, true, network(), Some(55e6)));
    assert_eq!(bottleneck(Some(100e6), &cases).unwrap().stage, "hosts daq1 and daq2, network");
    // One of them is at its own.
    let cases = [case("daq1", true, network(), Some(95e6)), case("daq2", true, network(), Some(50e6))];
    assert_eq!(bottleneck(Some(100e6), &cases).unwrap().stage, "host daq2, network");
}

/// A switch gave one of them less than its share.
#[test]
fn one_recorder_that_waits_for_its_network_below_its_own_knee_leaves_switch_or_sources() {
    let cases = [case("daq1", false, network(), Some(90e6)), case("daq2", true, network(), Some(90e6))];
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!(found.stage, FleetBottleneck::SHARED);
    assert!(found.evidence.ends_with("below its own knee: daq2 50.0 MB/s of 90.0 MB/s alone"), "{found:?}");
    // Not if nothing is known about it alone.
    let unknown = [case("daq1", false, network(), None), case("daq2", true, network(), None)];
    assert_eq!(bottleneck(Some(100e6), &unknown).unwrap().stage, "host daq2, network");
}

#[test]
fn a_recorder_that_fails_by_itself_below_its_own_knee_is_named() {
    // Alone it carried more, but its volume is full now: nothing that it shares.
    let below = |host, failed| case(host, failed, volume(), Some(95e6));
    let found = bottleneck(Some(100e6), &[below("daq1", false), below("daq2", true)]).unwrap();
    assert_eq!((found.stage.as_str(), found.hosts), ("host daq2, volume /b", vec!["daq2".to_owned()]));
}

#[test]
fn drains_that_fall_behind_below_their_own_knee_are_named() {
    let drain =
        Evidence { drain_behind: Some("the drain fell behind".to_owned()), failed: true, ..network() };
    let cases = ["daq1", "daq2"].map(|host| case(host, true, drain.clone(), Some(95e6)));
    assert_eq!(bottleneck(Some(100e6), &cases).unwrap().stage, "hosts daq1 and daq2, drain");
}

#[test]
fn a_slow_source_is_named_with_its_address() {
    let mut cases = [case("daq1", false, network(), None), case("daq2", false, network(), None)];
    (cases[1].source_short, cases[1].source) = (true, "10.0.0.7:7615".to_owned());
    let found = bottleneck(Some(100e6), &cases).unwrap();
    assert_eq!(found.stage, "source 10.0.0.7:7615");
}

#[test]
fn without_a_failure_the_slowest_at_full_speed_is_named() {
    let mut cases = [case("daq1", false, network(), None), case("daq2", false, volume(), None)];
    cases[1].of_all = 80e6;
    let found = bottleneck(None, &cases).unwrap();
    assert_eq!(found.stage, "host daq2, volume /b");
    assert!(found.evidence.starts_with("no rate failed;"), "{}", found.evidence);
    assert_eq!(bottleneck(None, &[]), None);
}
