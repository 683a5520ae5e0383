//! Hand-over to writers whose rings are full, that rest, or that have failed.
use std::sync::mpsc::{Receiver, channel};

use keepup_sys::pool::Pool;
use keepup_sys::ring;

use super::*;
use crate::link::{SealedMeta, samples};
use crate::placement::PlacementKind;

/// The other end of a link.
struct Writer {
    blocks: ring::Consumer<Sealed>,
    _reports: ring::Producer<FromWriter>,
    signals: Arc<WriterSignals>,
    _keeper: Receiver<ToKeeper>,
}

impl Writer {
    fn fail(&self) {
        let failure = Failure { why: "broken".into(), cause: LossCause::SpaceExhausted };
        self.signals.failure.set(failure).unwrap();
    }

    fn taken(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.blocks.pop()).map(|sealed| sealed.meta.header.stream_block).collect()
    }
}

fn volumes(count: usize, slots: usize) -> (Volumes, Vec<Writer>) {
    let (mut links, mut writers) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (to_writer, blocks) = ring::pair(slots);
        let (_reports, reports) = ring::pair(slots);
        let (keeper, _keeper) = channel();
        let signals = Arc::new(WriterSignals::default());
        let (waker, label) = (Waker::new().unwrap(), "v".to_owned());
        links.push(VolumeLink {
            blocks: to_writer,
            reports,
            waker,
            signals: Arc::clone(&signals),
            keeper,
            label,
        });
        writers.push(Writer { blocks, _reports, signals, _keeper });
    }
    let counters = Arc::new(Counters::new(2, count, 0));
    (Volumes::new(1, links, PlacementKind::Free.build(0), counters), writers)
}

fn sealed(pool: &mut Pool, number: u64) -> Sealed {
    let meta = SealedMeta { bytes: 16 << 10, ..samples::meta(0, 3, number) };
    Sealed { block: pool.take(1).unwrap(), meta }
}

#[test]
fn blocks_above_the_slots_of_a_ring_wait_in_order() {
    let (mut volumes, mut writers) = volumes(1, 4);
    let mut pool = Pool::new(2 << 20).unwrap();
    (0..10).for_each(|number| volumes.place(sealed(&mut pool, number)).unwrap());
    assert_eq!(volumes.bytes_waiting(), 10 * (16 << 10));
    volumes.flush();
    assert!(writers[0].signals.flush.swap(false, Ordering::AcqRel), "what is in the ring");
    let mut taken = writers[0].taken();
    assert_eq!(taken, [0, 1, 2, 3]);
    assert!(volumes.serve_waiting().is_empty());
    taken.extend(writers[0].taken());
    assert!(!writers[0].signals.flush.load(Ordering::Acquire), "two blocks still wait");
    assert!(volumes.serve_waiting().is_empty());
    assert!(writers[0].signals.flush.load(Ordering::Acquire), "what waited is flushed too");
    taken.extend(writers[0].taken());
    assert_eq!(taken, (0..10).collect::<Vec<_>>());
}

#[test]
fn the_owner_of_a_block_is_its_intake() {
    let (mut volumes, mut writers) = volumes(1, 4);
    volumes.place(sealed(&mut Pool::new(2 << 20).unwrap(), 0)).unwrap();
    assert_eq!(writers[0].blocks.pop().unwrap().meta.intake, 1);
}

#[test]
fn blocks_that_wait_for_a_volume_that_fails_come_back() {
    let (mut volumes, mut writers) = volumes(2, 2);
    let mut pool = Pool::new(2 << 20).unwrap();
    (0..8).for_each(|number| volumes.place(sealed(&mut pool, number)).unwrap());
    writers[0].fail();
    let stranded = volumes.serve_waiting();
    let numbers = |blocks: &[Sealed]| blocks.iter().map(|s| s.meta.header.stream_block).collect::<Vec<_>>();
    assert_eq!(numbers(&stranded), [4, 6]);
    stranded.into_iter().for_each(|sealed| volumes.place(sealed).unwrap());
    let mut taken = writers[1].taken();
    while volumes.serve_waiting().is_empty() && taken.len() < 6 {
        taken.extend(writers[1].taken());
    }
    assert_eq!(taken, [1, 3, 5, 7, 4, 6]);
}

#[test]
fn slow_volumes_take_blocks_when_no_other_works_and_failed_ones_never() {
    let (mut volumes, mut writers) = volumes(2, 8);
    let mut pool = Pool::new(2 << 20).unwrap();
    writers[0].signals.rest.store(true, Ordering::Release);
    (0..3).for_each(|number| volumes.place(sealed(&mut pool, number)).unwrap());
    assert_eq!(writers[0].taken(), [0u64; 0]);
    writers[1].fail();
    volumes.place(sealed(&mut pool, 3)).unwrap();
    assert_eq!(writers[0].taken(), [3]);
    writers[0].fail();
    let (_, cause) = volumes.place(sealed(&mut pool, 4)).unwrap_err();
    assert_eq!(cause, LossCause::SpaceExhausted);
    assert!(volumes.all_failed());
    assert_eq!(volumes.failures(), "v: broken; v: broken");
}
