//! Owners of streams: even, the same everywhere, and moved only with their recorder.
use proptest::prelude::*;

use super::*;

fn member(host: HostId) -> Member {
    Member { host, address: SocketAddr::from(([10, 0, 0, 1], 7000)) }
}

fn without(view: &View, host: HostId, spare: Option<Member>) -> View {
    let mut next = view.clone();
    next.replace(host, spare).unwrap();
    next
}

fn view(hosts: u32) -> View {
    View::new(1, 1, &(0..hosts).map(member).collect::<Vec<_>>())
}

#[test]
fn owners_are_part_of_the_protocol() {
    let owners: Vec<u32> = (0..12).map(|stream| view(4).owner(stream).unwrap().host).collect();
    assert_eq!(owners, [0, 1, 2, 3, 1, 2, 3, 0, 2, 3, 0, 1]);
    let view = without(&view(4), 0, None);
    let owners: Vec<u32> = (0..12).map(|stream| view.owner(stream).unwrap().host).collect();
    assert_eq!(owners, [1, 1, 2, 3, 1, 2, 3, 2, 2, 3, 3, 1]);
    let view = without(&view, 1, None);
    let owners: Vec<u32> = (0..12).map(|stream| view.owner(stream).unwrap().host).collect();
    assert_eq!(owners, [2, 2, 2, 3, 3, 2, 3, 2, 2, 3, 3, 3]);
}

/// Streams of each host.
fn counts(view: &View, streams: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut counts = vec![0; view.slots.len()];
    streams.for_each(|stream| counts[view.owner(stream).unwrap().host as usize] += 1);
    counts
}

/// Difference between the largest and the smallest share of the recorders.
fn spread_of(view: &View, streams: u32) -> usize {
    let counts = counts(view, 0..streams);
    let has = view.slots.iter().zip(&counts).filter(|(slot, _)| slot.is_some());
    let (mut least, mut most) = (usize::MAX, 0);
    has.for_each(|(_, &count)| (least, most) = (least.min(count), most.max(count)));
    most.saturating_sub(least)
}

#[test]
fn every_second_or_third_stream_is_dealt_evenly_too() {
    for (recorders, step) in [(2, 2), (3, 3), (4, 2), (4, 4), (4, 8), (6, 3), (8, 16), (5, 7), (54, 2)] {
        let counts = counts(&view(recorders), (0..960).map(|stream| stream * step));
        let even = 960 / recorders as usize;
        let is_even = |&count: &usize| count.abs_diff(even) <= even / 4;
        assert!(counts.iter().all(is_even), "{recorders}, {step}: {counts:?}");
    }
}

#[test]
fn a_view_owns_what_the_shares_say() {
    for (streams, recorders) in [(1, 1), (4, 2), (54, 4), (508, 7), (0, 3)] {
        let counts = counts(&view(recorders), 0..streams);
        let shares: Vec<usize> =
            shares(streams, recorders as usize).iter().map(|&share| share as usize).collect();
        assert_eq!(shares, counts);
    }
    assert_eq!((shares(54, 4), shares(3, 0)), (vec![14, 14, 13, 13], vec![]));
}

#[test]
fn without_a_recorder_no_stream_has_an_owner() {
    assert_eq!(view(0).owner(3), None);
    assert_eq!(without(&view(1), 0, None).owner(3), None);
}

#[test]
fn changes_lead_to_the_same_view() {
    let (mut here, mut there) = (view(4), view(4));
    let first = here.replace(2, None).unwrap();
    let second = here.replace(0, Some(member(7))).unwrap();
    assert_eq!(here.replace(2, None), None);
    let changes = |from, changes: &[Change]| Update::Changes { run: 1, from, changes: changes.to_vec() };
    there.update(changes(2, &[first, second]));
    assert_eq!(there.epoch, 1);
    there.update(changes(1, &[first]));
    there.update(changes(1, &[first, second]));
    assert_eq!(there, here);
    // Again, an older view, a slot that does not exist, another run.
    there.update(changes(1, &[first, second]));
    there.update(Update::Whole(view(4)));
    there.update(changes(3, &[Change { slot: 9, member: None }]));
    there.update(Update::Changes { run: 2, from: 3, changes: vec![first] });
    assert_eq!(there, here);
}

proptest! {
    #[test]
    fn streams_are_dealt_evenly(hosts in 1u32..20, streams in 0u32..2000, lost in 0u32..20) {
        let all = view(hosts);
        prop_assert!(spread_of(&all, streams) <= 1);
        if hosts > 1 {
            // Each of the others has 1 / (hosts - 1) of the lost share more.
            let left = without(&all, lost % hosts, None);
            prop_assert!(spread_of(&left, streams) <= 2, "{:?}", counts(&left, 0..streams));
        }
    }

    #[test]
    fn only_streams_of_a_lost_recorder_move(hosts in 2u32..20, lost in 0u32..20, stream: u32) {
        let before = view(hosts);
        let lost = lost % hosts;
        let owner = before.owner(stream).unwrap().host;
        let spread = without(&before, lost, None);
        let moved = without(&before, lost, Some(member(99)));
        prop_assert_eq!((spread.epoch, moved.epoch), (2, 2));
        if owner == lost {
            prop_assert!(spread.owner(stream).unwrap().host != lost);
            prop_assert_eq!(moved.owner(stream).unwrap().host, 99);
        } else {
            prop_assert_eq!(spread.owner(stream).unwrap().host, owner);
            prop_assert_eq!(moved.owner(stream).unwrap().host, owner);
        }
    }
}
