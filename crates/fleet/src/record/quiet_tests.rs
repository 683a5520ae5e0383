//! The end of a recording.
use super::*;

const S: u64 = 1_000_000_000;

fn counters(connected_streams: u32, ended_streams: u32) -> Counters {
    Counters { connected_streams, ended_streams, ..Counters::default() }
}

#[test]
fn a_recording_without_clients_stays() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, [counters(0, 0)]));
    assert!(!quiet.is_over(100 * S, [counters(0, 0), counters(0, 0)]));
}

#[test]
fn it_ends_some_time_after_the_last_client() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, [counters(3, 0), counters(0, 2)]));
    assert!(!quiet.is_over(S, [counters(0, 3), counters(0, 2)]));
    assert!(!quiet.is_over(5 * S, [counters(0, 3), counters(0, 2)]));
    assert!(quiet.is_over(6 * S, [counters(0, 3), counters(0, 2)]));
}

#[test]
fn streams_that_come_back_start_it_anew() {
    let mut quiet = Quiet::default();
    assert!(!quiet.is_over(0, [counters(0, 2)]));
    assert!(!quiet.is_over(3 * S, [counters(4, 2)]));
    assert!(!quiet.is_over(6 * S, [counters(0, 6)]));
    assert!(quiet.is_over(11 * S, [counters(0, 6)]));
}
