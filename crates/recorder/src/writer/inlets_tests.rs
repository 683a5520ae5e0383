//! Turns between intakes, and what a flush covers.
use keepup_sys::pool::Pool;
use keepup_sys::ring;

use super::*;
use crate::link::samples;

/// An intake's end of a link.
struct End {
    blocks: ring::Producer<Sealed>,
    reports: Option<ring::Consumer<FromWriter>>,
}

impl End {
    fn give(&mut self, pool: &mut Pool, intake: usize, number: u64) {
        let meta = samples::meta(intake, 0, number);
        self.blocks.push(Sealed { block: pool.take(1).unwrap(), meta }).unwrap();
    }
}

fn linked(count: usize, slots: usize) -> (Inlets, Vec<End>) {
    let (mut inlets, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (producer, blocks) = ring::pair(16);
        let (reports, consumer) = ring::pair(slots);
        inlets.push(Inlet { blocks, reports, waker: Waker::new().unwrap() });
        ends.push(End { blocks: producer, reports: Some(consumer) });
    }
    (Inlets::new(inlets), ends)
}

#[test]
fn a_full_ring_does_not_hold_up_the_other_intakes() {
    let (mut inlets, mut ends) = linked(3, 4);
    let mut pool = Pool::new(2 << 20).unwrap();
    (0..5).for_each(|number| ends[0].give(&mut pool, 0, number));
    (0..2).for_each(|number| ends[2].give(&mut pool, 2, number));
    let taken =
        std::iter::from_fn(|| inlets.take()).map(|(s, _)| (s.meta.intake, s.meta.header.stream_block));
    let expected = [(0, 0), (2, 0), (0, 1), (2, 1), (0, 2), (0, 3), (0, 4)];
    assert_eq!(taken.collect::<Vec<_>>(), expected);
    assert!(inlets.is_empty());
}

#[test]
fn a_flush_covers_what_was_in_the_rings_and_no_later_block() {
    let (mut inlets, mut ends) = linked(2, 4);
    let mut pool = Pool::new(2 << 20).unwrap();
    (0..2).for_each(|number| ends[0].give(&mut pool, 0, number));
    inlets.request_flush();
    (0..2).for_each(|number| ends[1].give(&mut pool, 1, number));
    ends[0].give(&mut pool, 0, 2);
    let taken: Vec<(usize, bool)> =
        std::iter::from_fn(|| inlets.take()).map(|(s, awaited)| (s.meta.intake, awaited)).collect();
    assert_eq!(taken, [(0, true), (1, false), (0, true), (1, false), (0, false)]);
}

#[test]
fn reports_go_to_the_owner_and_wait_for_space() {
    let (mut inlets, mut ends) = linked(2, 2);
    (0..3).for_each(|_| inlets.report(1, FromWriter::Failed));
    inlets.send_reports();
    assert!(!inlets.is_silent(), "the ring has two slots");
    let reports = ends[1].reports.as_mut().unwrap();
    assert_eq!(std::iter::from_fn(|| reports.pop()).count(), 2);
    inlets.send_reports();
    assert!(inlets.is_silent());
    assert!(ends[0].reports.as_ref().unwrap().is_empty());
}

#[test]
fn reports_for_an_intake_that_is_gone_are_dropped() {
    let (mut inlets, mut ends) = linked(2, 2);
    ends[0].reports = None;
    (0..5).for_each(|_| inlets.report(0, FromWriter::Failed));
    inlets.send_reports();
    assert!(inlets.is_silent(), "the writer could never end");
}
