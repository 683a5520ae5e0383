//! Balanced and unbalanced ledgers, and bounded memory.

use proptest::prelude::*;

use super::*;

fn count(events: u64) -> Count {
    Count { events, bytes: events * 100 }
}

/// 100 due, 10 lost at source, 5 lost on the way, 3 after receipt.
fn honest() -> StreamLedger {
    let mut ledger = StreamLedger {
        sent: count(90),
        lost_at_source: count(10),
        received: count(85),
        written: count(82),
        durable: count(82),
        ..StreamLedger::default()
    };
    for (first_sequence, events, cause) in [
        (20, 10, LossCause::SequenceGap),
        (50, 5, LossCause::ConnectionLost),
        (70, 3, LossCause::VolumeFailed),
    ] {
        ledger.add_gap(Gap { stream: 4, first_sequence, events, cause });
    }
    ledger
}

fn ledger(stream: StreamLedger) -> Ledger {
    Ledger { streams: BTreeMap::from([(4, stream)]) }
}

#[test]
fn accounted_losses_balance() {
    assert_eq!(ledger(honest()).balance(), Ok(()));
}

#[test]
fn each_silent_loss_is_named() {
    type Spoil = fn(&mut StreamLedger);
    let cases: [(Spoil, &str); 7] = [
        (|s| s.sent.events += 1, "events sent or lost at source: 101, but received or missing: 100"),
        (|s| s.lost_at_source.events += 1, "events sent or lost at source: 101"),
        (|s| s.received.events -= 1, "received or missing: 99"),
        (|s| s.written = count(81), "events received: 85, but written or lost after receipt: 84"),
        (|s| s.durable = count(81), "events written: 82, but durable: 81"),
        (|s| s.durable.bytes -= 1, "bytes written: 8200, but durable: 8199"),
        (|s| s.gap_events.clear(), "events sent or lost at source: 100, but received or missing: 85"),
    ];
    for (spoil, text) in cases {
        let mut stream = honest();
        spoil(&mut stream);
        let imbalance = ledger(stream).balance().unwrap_err();
        assert_eq!(imbalance.stream, 4);
        assert!(imbalance.to_string().contains(text), "{imbalance} / {text}");
    }
}

#[test]
fn bytes_are_compared_without_missing_events() {
    let mut stream = StreamLedger {
        sent: count(5),
        received: count(5),
        written: count(5),
        durable: count(5),
        ..StreamLedger::default()
    };
    assert_eq!(ledger(stream.clone()).balance(), Ok(()));
    stream.sent.bytes += 1;
    assert!(ledger(stream).balance().unwrap_err().to_string().contains("bytes sent: 501, but received: 500"));
}

#[test]
fn the_list_of_gaps_is_bounded_and_the_count_is_not() {
    let mut stream = StreamLedger::default();
    for at in 0..MAX_GAPS_KEPT as u64 + 50 {
        stream.add_gap(Gap { stream: 4, first_sequence: 2 * at, events: 1, cause: LossCause::BadChecksum });
    }
    assert_eq!(stream.gaps.len(), MAX_GAPS_KEPT);
    assert_eq!(stream.gap_events[&LossCause::BadChecksum], MAX_GAPS_KEPT as u64 + 50);
    let total = Ledger { streams: BTreeMap::from([(4, stream.clone()), (5, stream)]) }.total();
    assert_eq!(total.gaps.len(), MAX_GAPS_KEPT);
    assert_eq!(total.gap_events[&LossCause::BadChecksum], 2 * MAX_GAPS_KEPT as u64 + 100);
}

#[test]
fn json_is_stable() {
    let json = serde_json::to_string(&honest()).unwrap();
    assert!(
        json.contains(r#""gap_events":{"sequence_gap":10,"connection_lost":5,"volume_failed":3}"#),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<StreamLedger>(&json).unwrap(), honest());
    assert!(serde_json::from_str::<Count>(r#"{"events":1,"bytes":2,"x":3}"#).is_err());
}

proptest! {
    #[test]
    fn totals_are_sums_and_never_overflow(a in any::<(u64, u64)>(), b in any::<(u64, u64)>()) {
        let [x, y] = [a, b].map(|(events, bytes)| Count { events, bytes });
        prop_assert_eq!((x + y).events, a.0.saturating_add(b.0));
        prop_assert_eq!((x - y).bytes, a.1.saturating_sub(b.1));
        let stream = |sent| StreamLedger { sent, ..StreamLedger::default() };
        let ledger = Ledger { streams: BTreeMap::from([(1, stream(x)), (2, stream(y))]) };
        prop_assert_eq!(ledger.total().sent, x + y);
        let _ = ledger.balance();
    }
}

#[test]
fn a_reduced_stream_has_both_sizes_and_its_reduced_form_is_accounted_for() {
    let received = Count { events: 10, bytes: 1000 };
    let small = Count { events: 10, bytes: 90 };
    let plain =
        StreamLedger { sent: received, received, written: received, durable: received, ..Default::default() };
    let with = |reduced: Reduced| StreamLedger { reduced: Some(reduced), ..plain.clone() };
    let replaced = with(Reduced { durable: small, lost_events: 0, raw_kept: false });
    let beside = with(Reduced { durable: small, lost_events: 0, raw_kept: true });
    assert_eq!((plain.stored(), replaced.stored()), (received, small));
    assert_eq!(beside.stored(), Count { events: 20, bytes: 1090 });
    let all = Ledger { streams: [(0, plain.clone()), (1, replaced), (2, beside)].into() };
    assert_eq!(all.balance(), Ok(()));
    assert!(all.is_whole());
    assert_eq!(all.total().durable.bytes, 3000);
    assert_eq!(all.total().reduced.unwrap().durable, Count { events: 20, bytes: 180 });
    assert_eq!(all.stored(), Count { events: 40, bytes: 2180 });
    let nine = Count { events: 9, bytes: 81 };
    let lost = with(Reduced { durable: nine, lost_events: 1, raw_kept: true });
    assert!(lost.first_difference().is_none() && !lost.is_whole());
    let silent = with(Reduced { durable: nine, lost_events: 0, raw_kept: true });
    let difference = silent.first_difference().unwrap();
    assert_eq!((difference.left, difference.right), (10, 9));
    assert!(!serde_json::to_string(&plain).unwrap().contains("reduced"));
}

#[test]
fn declared_losses_never_arrived_whatever_their_cause() {
    let mut stream = honest();
    for cause in LossCause::ALL {
        stream.add_declared(Gap { stream: 4, first_sequence: 100, events: 2, cause });
        stream.lost_at_source.events += 2;
        assert_eq!(stream.undeclared(cause), honest().undeclared(cause));
        assert_eq!(ledger(stream.clone()).balance(), Ok(()), "{cause}");
    }
}

#[test]
fn skipped_events_are_explained_by_the_count_of_the_source() {
    let gap = |first_sequence, events, cause| Gap { stream: 4, first_sequence, events, cause };
    let mut stream = StreamLedger::default();
    // More gaps than are kept.
    (0..2000).for_each(|n| stream.add_gap(gap(n * 10, 3, LossCause::SequenceGap)));
    stream.add_declared(gap(30_000, 5, LossCause::CutOff));
    stream.lost_at_source.events = 6004;
    assert_eq!(stream.clone().explain_skipped(), None, "another count");
    stream.lost_at_source.events = 6005;
    let mut mixed = stream.clone();
    mixed.add_declared(gap(40_000, 1, LossCause::SequenceGap));
    mixed.lost_at_source.events += 1;
    assert_eq!(mixed.explain_skipped(), None, "the client itself knows no reason for some of them");
    assert_eq!(stream.explain_skipped(), Some(6000));
    let causes = [(LossCause::Source, 6000), (LossCause::CutOff, 5)];
    assert_eq!(stream.gap_events, BTreeMap::from(causes));
    assert!(stream.gaps.iter().all(|gap| gap.cause == LossCause::Source));
    assert_eq!(stream.explain_skipped(), None);
}
