//! Whole runs over two recorders on 127.0.0.1: recorders die, hang or lose connections, and no event is lost
//! that fits the buffer.
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use super::*;
use crate::client::ClientError;
use crate::receiver::fleet::{SharedView, Taken, TestRecorder};
use crate::source::Destination;
use crate::source::plan::tests::plan;
use crate::source::{EventSize, Rate, SourceCounters, SourceError, SourcePlan, SourceReport, run};

/// Two recorders: the first takes the first three streams of eight.
struct Hall {
    view: SharedView,
    recorders: [TestRecorder; 2],
}

const FIRST: std::ops::Range<u32> = 0..3;

impl Hall {
    fn new() -> Self {
        let view = SharedView::default();
        let recorders = [TestRecorder::start(&view), TestRecorder::start(&view)];
        view.assign(FIRST, recorders[0].address);
        view.assign(FIRST.end..8, recorders[1].address);
        Self { view, recorders }
    }

    fn fleet(&self, patience: Duration) -> Fleet {
        let recorders = self.recorders.iter().map(|recorder| recorder.address.into()).collect();
        Fleet { recorders, patience }
    }

    /// Runs the plan until `act` returns.
    fn run_during(
        &self,
        plan: &SourcePlan,
        patience: Duration,
        act: impl FnOnce(&SourceCounters),
    ) -> Result<SourceReport, SourceError> {
        let (stop, live) = (AtomicBool::new(false), SourceCounters::default());
        thread::scope(|scope| {
            let running = scope.spawn(|| run(plan, Destination::Fleet(self.fleet(patience)), &stop, &live));
            act(&live);
            stop.store(true, Relaxed);
            running.join().unwrap()
        })
    }

    /// Checks that what the recorders have is what the source reports; returns events that both have.
    fn check(&self, report: &SourceReport) -> usize {
        let mut all: BTreeMap<(u32, u64), Taken> = BTreeMap::new();
        let mut twice = 0;
        for recorder in &self.recorders {
            assert_eq!(recorder.faults(), Vec::<String>::new());
            for (id, stream) in recorder.streams() {
                for (sequence, taken) in stream.durable() {
                    if let Some(other) = all.insert((id, sequence), taken) {
                        assert_eq!(other, taken, "the same event twice is the same");
                        twice += 1;
                    }
                }
            }
        }
        let fleet = report.fleet.unwrap();
        let (due, sent, lost) = (report.total(|s| s.due), report.total(|s| s.sent), report.total(|s| s.lost));
        assert_eq!(due, sent + lost);
        assert_eq!((fleet.acknowledged, report.durable_events), (sent, sent.events));
        assert_eq!(all.len() as u64, sent.events, "every event is durable somewhere");
        assert_eq!(all.values().map(|taken| taken.bytes).sum::<u64>(), sent.bytes);
        twice
    }
}

/// Endless plan of eight streams over two connection groups, with events up to 3 kB.
fn endless(rate: Rate) -> SourcePlan {
    SourcePlan {
        size: EventSize::Uniform { min: 0, max: 3000 },
        rate,
        streams: 8,
        connections: 2,
        events: None,
        buffer_bytes: 64 << 20,
        ..plan()
    }
}

const PATIENCE: Duration = Duration::from_secs(60);

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn streams_of_a_killed_recorder_move_and_the_others_go_on() {
    let hall = Hall::new();
    let [first, second] = &hall.recorders;
    let report = hall.run_during(&endless(Rate::EventsPerSecond(4000.0)), PATIENCE, |_| {
        wait_until(|| first.received() > 100);
        // Events that it has received, and that are not durable.
        first.silence();
        let received = first.received();
        wait_until(|| first.received() > received + 50);
        first.kill();
        let received = second.received();
        wait_until(|| second.received() > received + 200);
        hall.view.assign(FIRST, second.address);
        wait_until(|| FIRST.clone().all(|id| second.streams().get(&id).is_some_and(|s| s.events.len() > 50)));
    });
    let report = report.unwrap();
    assert_eq!(hall.check(&report), 0, "the second continues exactly where the first was durable");
    let fleet = report.fleet.unwrap();
    assert_eq!((fleet.moved_streams, report.total(|s| s.lost).events), (3, 0));
    assert!(fleet.sent_again.events >= 50 && fleet.longest_without_recorder_ns > 0, "{fleet:?}");
    for (id, stream) in first.streams() {
        assert_eq!(second.streams()[&id].firsts, [stream.durable_next]);
    }
    assert!(report.lateness_ns.len() == report.total(|s| s.sent).events);
}

#[test]
fn a_cut_connection_continues_at_the_same_recorder() {
    let hall = Hall::new();
    let [first, second] = &hall.recorders;
    let report = hall.run_during(&endless(Rate::EventsPerSecond(4000.0)), PATIENCE, |_| {
        for cut in 1..=3 {
            wait_until(|| first.received() > 200 * cut);
            first.cut();
        }
        wait_until(|| first.received() > 800 && second.received() > 800);
    });
    let report = report.unwrap();
    hall.check(&report);
    assert_eq!(report.fleet.unwrap().moved_streams, 0);
    let connections: usize = first.streams().values().map(|stream| stream.firsts.len()).sum();
    assert!(connections >= 3 * 4, "{connections}");
}

#[test]
fn streams_of_a_recorder_that_hangs_move() {
    let hall = Hall::new();
    let [first, second] = &hall.recorders;
    let report = hall.run_during(&endless(Rate::EventsPerSecond(4000.0)), PATIENCE, |_| {
        wait_until(|| first.received() > 100);
        first.freeze(true);
        hall.view.assign(FIRST, second.address);
        wait_until(|| FIRST.clone().all(|id| second.streams().contains_key(&id)));
    });
    let report = report.unwrap();
    let fleet = report.fleet.unwrap();
    assert_eq!((fleet.moved_streams, report.total(|s| s.lost).events), (3, 0));
    hall.check(&report);
}

#[test]
fn a_source_that_starts_waits_for_a_recorder_that_hangs_while_another_is_lost() {
    let hall = Hall::new();
    let [first, second] = &hall.recorders;
    hall.view.assign(0..8, first.address);
    first.freeze(true);
    second.kill();
    let report = hall.run_during(&endless(Rate::EventsPerSecond(4000.0)), PATIENCE, |_| {
        // Longer than a question takes.
        thread::sleep(Duration::from_millis(800));
        first.freeze(false);
        wait_until(|| first.received() > 100);
    });
    hall.check(&report.unwrap());
}

#[test]
fn what_overflows_the_buffer_is_lost_and_counted() {
    let hall = Hall::new();
    let [first, _] = &hall.recorders;
    let plan = SourcePlan { buffer_bytes: 200_000, ..endless(Rate::EventsPerSecond(4000.0)) };
    let report = hall.run_during(&plan, PATIENCE, |live| {
        wait_until(|| first.received() > 100);
        first.freeze(true);
        wait_until(|| live.lost_events.load(Relaxed) > 100);
        first.freeze(false);
        let received = first.received();
        wait_until(|| first.received() > received + 200);
    });
    let report = report.unwrap();
    hall.check(&report);
    assert!(report.total(|s| s.lost).events > 100);
    assert!((150_000..=2 * 200_000).contains(&report.max_backlog_bytes), "{}", report.max_backlog_bytes);
}

#[test]
fn a_closed_loop_survives_a_killed_recorder_with_large_events() {
    let hall = Hall::new();
    let [first, second] = &hall.recorders;
    let size = EventSize::Uniform { min: 0, max: 1_500_000 };
    let plan = SourcePlan { size, buffer_bytes: 8 << 20, ..endless(Rate::Max) };
    let report = hall.run_during(&plan, PATIENCE, |_| {
        wait_until(|| first.received() > 20);
        hall.view.assign(FIRST, second.address);
        first.kill();
        wait_until(|| FIRST.clone().all(|id| second.streams().get(&id).is_some_and(|s| s.events.len() > 5)));
    });
    let report = report.unwrap();
    hall.check(&report);
    assert_eq!(report.total(|s| s.lost).events, 0);
    assert!(report.max_backlog_bytes <= 2 * plan.buffer_bytes && report.lateness_ns.is_empty());
}

#[test]
fn without_recorders_the_source_gives_up_and_keeps_the_counts() {
    let hall = Hall::new();
    let [first, second] = &hall.recorders;
    let patience = Duration::from_millis(300);
    // The buffers have room for 250 events or so, which they keep until they are acknowledged.
    let plan = SourcePlan { buffer_bytes: 200_000, ..endless(Rate::EventsPerSecond(4000.0)) };
    let report = hall.run_during(&plan, patience, |_| {
        wait_until(|| first.received() > 500 && second.received() > 500);
        first.kill();
        second.kill();
        // Long enough to give up before the schedule ends.
        thread::sleep(2 * patience);
    });
    let Err(SourceError::Broken { error: ClientError::NoRecorder { .. }, report, .. }) = report else {
        panic!("{report:?}")
    };
    let (due, sent, lost) = (report.total(|s| s.due), report.total(|s| s.sent), report.total(|s| s.lost));
    assert_eq!(due, sent + lost);
    assert!(report.durable_events > 0 && report.durable_events <= sent.events && lost.events > 0);
}

#[test]
fn every_recorder_gets_the_end() {
    let hall = Hall::new();
    let plan = SourcePlan { events: Some(500), ..endless(Rate::Max) };
    let report = hall.run_during(&plan, PATIENCE, |_| {
        wait_until(|| hall.recorders.iter().map(TestRecorder::ended).sum::<u64>() == 4);
    });
    let report = report.unwrap();
    assert_eq!((hall.check(&report), report.total(|s| s.sent).events), (0, 500));
    assert_eq!(report.fleet.unwrap().sent_again.events, 0);
}
