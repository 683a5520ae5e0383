//! The end of a recording.
use super::*;

const S: u64 = 1_000_000_000;

fn total(connected: u64, ended: u64) -> Total {
    Total { connected, ended, ..Total::default() }
}

#[test]
fn a_recording_without_clients_stays() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, &total(0, 0)));
    assert!(!quiet.is_over(100 * S, &total(0, 0)));
}

#[test]
fn it_ends_some_time_after_the_last_client() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, &total(3, 2)));
    assert!(!quiet.is_over(S, &total(0, 5)));
    assert!(!quiet.is_over(5 * S, &total(0, 5)));
    assert!(quiet.is_over(6 * S, &total(0, 5)));
}

#[test]
fn streams_that_come_back_start_it_anew() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, &total(0, 2)));
    assert!(!quiet.is_over(3 * S, &total(4, 2)));
    assert!(!quiet.is_over(6 * S, &total(0, 6)));
    assert!(quiet.is_over(11 * S, &total(0, 6)));
}

#[test]
fn clients_of_a_lost_recorder_have_time_to_reach_another_one() {
    let mut quiet = Quiet::default();
    // Two have ended, three are connected to the recorder that is lost.
    assert!(!quiet.is_over(0, &total(3, 2)));
    quiet.moved(S);
    assert!(!quiet.is_over(S, &total(0, 2)));
    let mut gone = quiet;
    assert!(!gone.is_over(40 * S, &total(0, 2)));
    assert!(gone.is_over(41 * S, &total(0, 2)));
    // All are back, and end.
    assert!(!quiet.is_over(8 * S, &total(3, 2)));
    assert!(!quiet.is_over(9 * S, &total(0, 5)));
    assert!(quiet.is_over(14 * S, &total(0, 5)));
}

#[test]
fn a_pause_of_the_controller_is_no_quiet_time() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, &total(0, 2)));
    quiet.paused();
    assert!(!quiet.is_over(100 * S, &total(0, 2)));
    assert!(quiet.is_over(105 * S, &total(0, 2)));
}

#[test]
fn a_lost_recorder_keeps_its_counts_and_has_no_clients() {
    let counters = Counters {
        events: 10,
        bytes: 100,
        durable_events: 9,
        connected_streams: 3,
        ended_streams: 2,
        ..Counters::default()
    };
    let total = Total::of([(counters, true), (counters, false)]);
    let sum = Total { events: 20, bytes: 200, durable_events: 18, connected: 3, ended: 4 };
    assert_eq!(total, sum);
}
