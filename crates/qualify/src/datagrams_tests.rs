//! Outcomes of datagram trials.
use keepup_results::{NetFlow, NetMoved};

use super::*;

fn run(due: u64, refused: u64, late: u64, lost: u64) -> NetRun {
    let sent = due - refused - late;
    let moved =
        |messages: u64| Some(NetMoved { bytes: messages * 1000, messages, seconds: 2.0, tenths: Vec::new() });
    let flow = NetFlow {
        number: 0,
        server: "10.0.0.1:1".into(),
        from_client: true,
        target_bytes_per_second: None,
        sent: moved(sent),
        received: moved(sent - lost),
        sender: None,
        receive_buffer_bytes: None,
    };
    let ledger = NetLedger {
        due,
        unsent: refused + late,
        refused,
        sent,
        received: sent - lost,
        duplicates: 0,
        reordered: 0,
        lost,
        losses: Vec::new(),
        unexplained: lost,
        foreign: 0,
        longest_pause_ns: 0,
        buffer_needed_bytes: 0,
    };
    NetRun {
        loads: Vec::new(),
        name: String::new(),
        repeat: 1,
        flows: vec![flow],
        ends: Vec::new(),
        ledger: Some(ledger),
        latency: None,
    }
}

#[test]
fn refused_by_a_full_queue_is_lost_and_late_is_the_generators() {
    let second = Duration::from_secs(2);
    let judge = |due, refused, late, lost| {
        let outcome = judged(&run(due, refused, late, lost), second);
        (outcome.lost_events, outcome.generator_limited)
    };
    assert_eq!(judge(1000, 0, 0, 0), (0, false));
    assert_eq!(judge(1000, 0, 4, 0), (0, false));
    assert_eq!(judge(1000, 0, 6, 0), (0, true));
    assert_eq!(judge(1000, 300, 0, 0), (300, false));
    assert_eq!(judge(1000, 300, 0, 5), (305, false));
    // A generator with every second datagram refused offers twice what it sends.
    assert_eq!(judged(&run(1000, 500, 0, 0), second).offered_rate, 500e3);
    let outcome = judged(&run(1000, 0, 0, 100), second);
    assert_eq!((outcome.offered_rate, outcome.achieved_rate, outcome.loss_ratio()), (500e3, 450e3, 0.1));
}

#[test]
fn a_run_without_an_account_fails() {
    let mut silent = run(1000, 0, 0, 0);
    silent.ledger = None;
    let outcome = judged(&silent, Duration::from_secs(1));
    assert!(outcome.failed.is_some() && outcome.loss_ratio() == 1.0);
}
