//! Blocks handed to a reducer and back, and the losses entered when they do not come back.
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use keepup_recording::crc::crc32;
use keepup_stream::wire::{ElementType, EventHead};
use keepup_sys::pool::Pool;
use keepup_sys::ring;
use keepup_sys::waker::Waker;

use super::super::Allocation;
use super::*;
use crate::counters::Counters;
use crate::intake::shards::Shards;
use crate::intake::volumes::Volumes;
use crate::reduce::worker::ReducerLink;
use crate::{PlacementKind, RecorderConfig, Target};

/// Test double of a reducer thread.
struct Thread {
    jobs: ring::Consumer<Job>,
    done: ring::Producer<Done>,
}

fn store(reduction: &str) -> (Store, Thread) {
    let target = Target::Volumes(vec![PathBuf::from("/nowhere")]);
    let mut config = RecorderConfig::new(([127, 0, 0, 1], 0).into(), target, "run");
    config.reductions = vec![reduction.parse().unwrap()];
    let counters = Arc::new(Counters::new(1, 0, 1));
    let (jobs, taken) = ring::pair(16);
    let (given, done) = ring::pair(16);
    let close = Arc::new(AtomicBool::new(false));
    let link = ReducerLink { jobs, done, index: 0, waker: Waker::new().unwrap(), close };
    let volumes = Volumes::new(0, Vec::new(), PlacementKind::Free.build(0), Arc::clone(&counters));
    let shards = Shards::new(vec![Waker::new().unwrap()]);
    let pool = Pool::new(8 << 20).unwrap();
    let store = Store::new(&config, Arc::new(shards), pool, (volumes, None), vec![link], counters);
    (store, Thread { jobs: taken, done: given })
}

fn info() -> StreamInfo {
    let (name, shape) = ("s".to_owned(), vec![8]);
    StreamInfo { id: 5, name, element: ElementType::U16, shape, compression: None }
}

/// Receives an event and sends its block.
fn receive(store: &mut Store, sequence: u64) {
    let payload = [7; 16];
    let crc = crc32(&payload);
    let head = EventHead { index: 0, stream: 5, sequence, timestamp_ns: 3, length: 16, crc };
    assert_eq!(store.begin(0, &head), Allocation::Ready);
    store.payload(0, 16).copy_from_slice(&payload);
    store.complete(0, &head, crc, 0).unwrap();
    store.seal(0);
}

#[test]
fn a_reducer_that_ends_early_leaves_losses_with_a_cause() {
    for (reduction, raw_kept) in [("lz4", false), ("keep=both: lz4", true)] {
        let (mut store, thread) = store(reduction);
        let free = store.pool.bytes_free();
        store.adopt(&[info()], 0, &[], &Default::default()).unwrap();
        receive(&mut store, 0);
        assert!(!store.reductions.is_idle() && !store.is_slot_settled(0));
        drop(thread);
        assert!(!store.absorb_reduced());
        // Later blocks cannot be handed over; their memory returns to the pool.
        let taken = free - store.pool.bytes_free();
        receive(&mut store, 1);
        assert_eq!(free - store.pool.bytes_free(), taken);
        assert!(store.reductions.is_idle() && store.is_slot_settled(0));
        assert!(store.failed.as_ref().is_some_and(|why| why.contains("ended early")));
        assert_eq!(store.incidents.total, 2);
        let ledger = store.ledger();
        let account = &ledger.streams[&5];
        assert_eq!((account.received.events, account.durable.events), (2, 0));
        assert_eq!(account.gap_events[&LossCause::NotReduced], 2);
        assert_eq!(account.reduced, Some(Reduced { lost_events: 2, raw_kept, ..Reduced::default() }));
        assert!(!account.is_whole());
        assert_eq!(store.ends().len(), if raw_kept { 2 } else { 1 });
    }
}

#[test]
fn events_that_cannot_be_reduced_are_lost_only_in_reduced_form() {
    let (mut store, mut thread) = store("keep=both: lz4");
    store.adopt(&[info()], 0, &[], &Default::default()).unwrap();
    receive(&mut store, 0);
    let Job { to, raw, target, .. } = thread.jobs.pop().unwrap();
    assert_eq!((to.stream, raw.meta.header.event_count), (DERIVED_ID_MIN, 1));
    thread.done.push(Done { to, raw, reduced: Err(target) }).unwrap();
    // No volume takes the raw block in this test, which is another loss with another cause.
    assert!(store.absorb_reduced());
    assert!(store.is_slot_settled(0) && store.reductions.is_idle());
    let ledger = store.ledger();
    let account = &ledger.streams[&5];
    assert_eq!(account.reduced.unwrap().lost_events, 1);
    assert_eq!(account.gap_events.get(&LossCause::NotReduced), None);
    assert_eq!(account.gap_events[&LossCause::VolumeFailed], 1);
}

#[test]
fn memory_for_both_forms_is_lent_together_or_not_at_all() {
    let (mut store, _thread) = store("spectrum");
    store.adopt(&[info()], 0, &[], &Default::default()).unwrap();
    let (block, target) = store.lend(0, 16).unwrap();
    let events = block.len() / (16 + MESSAGE_HEADER);
    assert!(target.as_ref().unwrap().len() >= events * (20 + MESSAGE_HEADER), "5 bins for 8 samples");
    let mut held = vec![block];
    held.extend(target);
    while let Some(block) = store.pool.take(1) {
        held.push(block);
    }
    store.pool.give_back(held.remove(0));
    let free = store.pool.bytes_free();
    assert!(store.lend(0, 16).is_none());
    assert_eq!(store.pool.bytes_free(), free);
}
