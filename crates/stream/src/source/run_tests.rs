//! Whole runs with the test receiver over 127.0.0.1: the sums must be exact.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;

use keepup_error::Diagnostic as _;

use super::*;
use crate::ledger::Count;
use crate::receiver::{Behaviour, ReceivedConnection, receive};
use crate::source::plan::tests::plan;
use crate::source::{Burst, EventSize};
use crate::wire::ErrorReply;

fn run_plain(plan: &SourcePlan, addr: SocketAddr) -> (Result<SourceReport, SourceError>, SourceCounters) {
    let live = SourceCounters::default();
    let result = run(plan, addr, &AtomicBool::new(false), &live);
    (result, live)
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

/// Checks that all counts agree: report, live counters, end message, receiver.
fn assert_balanced(report: &SourceReport, live: &SourceCounters, talks: &[ReceivedConnection]) {
    let arrived: Vec<_> = talks.iter().flat_map(|talk| &talk.streams).collect();
    let ended: Vec<_> = talks.iter().flat_map(|talk| &talk.end.as_ref().unwrap().streams).collect();
    assert_eq!((report.streams.len(), report.bye.streams.len()), (arrived.len(), arrived.len()));
    for stream in &report.streams {
        assert_eq!(stream.due, stream.sent + stream.lost);
        assert_eq!(stream.next_sequence - stream.first_sequence, stream.due.events);
        let (_, got) = arrived.iter().find(|(id, _)| **id == stream.id).unwrap();
        assert_eq!(
            (got.received, got.missing_events, got.bad_checksums),
            (stream.sent, stream.lost.events, 0)
        );
        let end = ended.iter().find(|end| end.id == stream.id).unwrap();
        assert_eq!(
            (end.events, end.bytes, end.lost_events),
            (stream.sent.events, stream.sent.bytes, stream.lost.events)
        );
        let pages = got.stamps.iter().collect::<BTreeSet<_>>();
        assert_eq!(pages.len(), got.stamps.len(), "no two pages are equal");
    }
    let (due, sent, lost) = (report.total(|s| s.due), report.total(|s| s.sent), report.total(|s| s.lost));
    let seen = |events, bytes| Count { events: read(events), bytes: read(bytes) };
    assert_eq!(seen(&live.due_events, &live.due_bytes), due);
    assert_eq!(seen(&live.sent_events, &live.sent_bytes), sent);
    assert_eq!(seen(&live.lost_events, &live.lost_bytes), lost);
    assert_eq!((read(&live.backlog_bytes), report.durable_events), (0, sent.events));
    assert!(report.cpu_ns > 0 && read(&live.cpu_ns) == report.cpu_ns);
    assert!(read(&live.blocked_ns) >= report.blocked_ns && report.longest_blocked_ns <= report.blocked_ns);
    if !report.closed_loop {
        assert_eq!(report.lateness_ns.len(), sent.events);
    }
}

fn join(receiver: JoinHandle<Vec<ReceivedConnection>>) -> Vec<ReceivedConnection> {
    receiver.join().unwrap()
}

#[test]
fn an_open_loop_run_balances_over_streams_and_connections() {
    let (addr, receiver) = receive(3, || Behaviour { next_sequence: 1000, ..Behaviour::default() });
    let plan = SourcePlan {
        size: EventSize::Uniform { min: 0, max: 9000 },
        rate: Rate::EventsPerSecond(20_000.0),
        streams: 7,
        connections: 3,
        first_stream: 5,
        events: Some(4001),
        buffer_bytes: 64 << 20,
        ..plan()
    };
    let (report, live) = run_plain(&plan, addr);
    let (report, talks) = (report.unwrap(), join(receiver));
    assert_balanced(&report, &live, &talks);
    assert_eq!((report.total(|s| s.due).events, report.total(|s| s.lost).events), (4001, 0));
    assert_eq!(report.streams[0].id, 5);
    assert!(report.elapsed_ns >= 4000 * 50_000, "no event is sent before it is due");
    assert!(report.started_unix_ns < report.ended_unix_ns);
    for (id, stream) in talks.iter().flat_map(|talk| &talk.streams) {
        let expected =
            (1000..).zip(&stream.sizes).all(|(n, bytes)| plan.size.bytes(plan.seed, *id, n) == *bytes);
        assert!(expected, "sizes can be computed from the plan");
    }
}

#[test]
fn timestamps_are_the_due_times_of_the_bursts() {
    let (addr, receiver) = receive(1, Behaviour::default);
    let burst = Burst { on: Duration::from_millis(10), off: Duration::from_millis(30) };
    let plan = SourcePlan {
        rate: Rate::EventsPerSecond(5_000.0),
        streams: 1,
        connections: 1,
        burst: Some(burst),
        events: None,
        duration: Some(Duration::from_millis(100)),
        ..plan()
    };
    let (report, live) = run_plain(&plan, addr);
    let (report, talks) = (report.unwrap(), join(receiver));
    assert_balanced(&report, &live, &talks);
    assert_eq!(report.total(|s| s.due).events, 150, "bursts at 0, 40 and 80 ms, of 50 events each");
    assert!(report.elapsed_ns >= 100_000_000, "the schedule lasts to its end");
    assert!(report.idle_ns > 0, "there is nothing to do between bursts");
    let start_ns = report.started_unix_ns;
    let due: Vec<u64> = talks[0].streams[&0].timestamps_ns.iter().map(|t| t - start_ns).collect();
    let expected: Vec<u64> = (0..150).map(|n| n / 50 * 40_000_000 + n % 50 * 200_000).collect();
    assert_eq!(due, expected);
}

#[test]
fn a_stalled_receiver_costs_events_and_each_is_counted() {
    let live = Arc::new(SourceCounters::default());
    let seen = Arc::clone(&live);
    let (addr, receiver) = receive(1, move || {
        let seen = Arc::clone(&seen);
        // Reads only after the source has lost events while waiting: both sides see the same
        // stall, on a machine of any speed.
        let stall = move || {
            while read(&seen.lost_events) < 10 || read(&seen.blocked_ns) == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        };
        Behaviour { before_reading: Box::new(stall), ..Behaviour::default() }
    });
    let plan = SourcePlan {
        size: EventSize::Fixed(64 << 10),
        rate: Rate::EventsPerSecond(4_000.0),
        streams: 2,
        connections: 1,
        events: None,
        ..plan()
    };
    let stop = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        let run = scope.spawn(|| run(&plan, addr, &stop, &live));
        while read(&live.lost_events) < 10 || read(&live.blocked_ns) == 0 || read(&live.sent_events) < 400 {
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
        run.join().unwrap().unwrap()
    });
    let talks = join(receiver);
    assert_balanced(&report, &live, &talks);
    assert!(report.total(|s| s.lost).events >= 10 && report.blocked_ns > 0);
    assert!(
        report.max_backlog_bytes <= plan.buffer_bytes && report.max_backlog_bytes > plan.buffer_bytes / 2
    );
    assert!(report.lateness_ns.max() >= report.longest_blocked_ns / 2, "waiting makes events late");
}

#[test]
fn a_closed_loop_sends_large_events_without_loss() {
    let (addr, receiver) = receive(2, Behaviour::default);
    let plan = SourcePlan {
        size: EventSize::Uniform { min: 0, max: 3_000_000 },
        rate: Rate::Max,
        events: Some(60),
        buffer_bytes: 4 << 20,
        ..plan()
    };
    let (report, live) = run_plain(&plan, addr);
    let report = report.unwrap();
    assert_balanced(&report, &live, &join(receiver));
    assert!(report.closed_loop && report.lateness_ns.is_empty());
    assert_eq!((report.total(|s| s.sent).events, report.total(|s| s.lost).events), (60, 0));
}

#[test]
fn stop_ends_an_endless_run_in_order() {
    for rate in [Rate::Max, Rate::EventsPerSecond(2_000.0)] {
        let (addr, receiver) = receive(2, Behaviour::default);
        let plan = SourcePlan { rate, events: None, ..plan() };
        let (live, stop) = (SourceCounters::default(), AtomicBool::new(false));
        let report = thread::scope(|scope| {
            let run = scope.spawn(|| run(&plan, addr, &stop, &live));
            while read(&live.sent_events) < 50 {
                thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Relaxed);
            run.join().unwrap().unwrap()
        });
        assert_balanced(&report, &live, &join(receiver));
        assert!(report.total(|s| s.sent).events >= 50);
    }
}

#[test]
fn a_refusal_precedes_any_event() {
    let refusal = ErrorReply { error: "recording is full".to_owned(), hint: String::new() };
    let (addr, receiver) =
        receive(1, move || Behaviour { refuse: Some(refusal.clone()), ..Behaviour::default() });
    let (result, live) = run_plain(&plan(), addr);
    let SourceError::Connect { connection: 0, error: ClientError::Refused { error, .. } } =
        result.unwrap_err()
    else {
        panic!("not refused");
    };
    assert_eq!(error, "recording is full");
    assert_eq!(read(&live.due_events), 0);
    join(receiver);
}

#[test]
fn events_above_the_recorders_limit_are_refused_at_once() {
    let (addr, receiver) = receive(1, || Behaviour { max_event_bytes: 999, ..Behaviour::default() });
    let error = run_plain(&plan(), addr).0.unwrap_err();
    assert!(
        error.to_string().ends_with("events of up to 1000 bytes, but the recorder takes at most 999")
            && error.hint().is_some(),
        "{error}"
    );
    join(receiver);
}

#[test]
fn a_dead_receiver_leaves_the_counts() {
    let (addr, receiver) = receive(2, || Behaviour { die_after_events: Some(500), ..Behaviour::default() });
    let plan =
        SourcePlan { rate: Rate::Max, events: None, duration: Some(Duration::from_secs(60)), ..plan() };
    let (result, live) = run_plain(&plan, addr);
    let Err(SourceError::Broken { error, report, .. }) = result else { panic!("{result:?}") };
    assert!(matches!(error, ClientError::Closed { .. }), "{error}");
    assert!(error.to_string().contains("the recorder closed the connection"), "{error}");
    let talks = join(receiver);
    let (due, sent, lost) = (report.total(|s| s.due), report.total(|s| s.sent), report.total(|s| s.lost));
    assert_eq!(due, sent + lost);
    assert_eq!((read(&live.due_events), read(&live.sent_events)), (due.events, sent.events));
    let received: u64 = talks.iter().flat_map(|talk| talk.streams.values()).map(|s| s.received.events).sum();
    assert!(received >= 500 && due.events >= received && report.durable_events > 0);
    assert!(report.durable_events <= received);
}
