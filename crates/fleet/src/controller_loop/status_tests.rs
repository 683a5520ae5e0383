//! The table, as text.
use super::*;
use crate::link::Count;

fn host(name: &str, role: Role, report: Option<HostReport>) -> HostStatus {
    HostStatus { name: name.to_owned(), role, report }
}

#[test]
fn a_table_has_a_line_for_each_host() {
    let report = HostReport {
        version: 1,
        state: HostState::Idle,
        clock_offset_ns: Some(-1_500_000),
        clock_error_ns: Some(120_000),
        round_trip_ns: Some(240_000),
        counters: Counters::default(),
    };
    let fresh =
        HostReport { clock_offset_ns: None, clock_error_ns: None, round_trip_ns: None, ..report.clone() };
    let status = FleetStatus {
        name: "hall".to_owned(),
        controller: SocketAddr::from(([10, 0, 0, 1], 7650)),
        hosts: vec![
            host("recorder-1", Role::Recorder, Some(report)),
            host("rec2", Role::Spare, Some(fresh)),
            host("src", Role::Source, None),
        ],
        traffic: Traffic {
            sent: Count { messages: 3, bytes: 900 },
            received: Count { messages: 2, bytes: 500 },
        },
    };
    let table = "\
host        role      state    version  clock offset (ms)  round trip (ms)
recorder-1  recorder  idle     1        -1.50 ± 0.12       0.24
rec2        spare     idle     1        -                  -
src         source    MISSING  -        -                  -
fleet hall: 2 of 3 hosts, controller on 10.0.0.1:7650
3 messages with 900 bytes sent, 2 with 500 received";
    assert_eq!(status.table(), table);
    assert!(!status.is_complete());
    let json = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<FleetStatus>(&json).unwrap(), status);
}
