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
    assert_eq!(owners, [2, 1, 1, 1, 1, 0, 0, 0, 2, 0, 1, 3]);
}

#[test]
fn streams_are_dealt_evenly() {
    let mut counts = [0u32; 8];
    for stream in 0..8_000 {
        counts[view(8).owner(stream).unwrap().host as usize] += 1;
    }
    // Binomial: 1000 with a standard deviation of 30.
    assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
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

#[test]
fn the_largest_share_is_that_of_a_view() {
    for (streams, recorders) in [(1, 1), (4, 2), (54, 4), (508, 7)] {
        let hosts: Vec<Member> =
            (0..recorders).map(|host| Member { host, address: ([10, 0, 0, 1], 1).into() }).collect();
        let view = View::new(1, 1, &hosts);
        let share = |host| (0..streams).filter(|&stream| view.owner(stream).unwrap().host == host).count();
        assert_eq!((0..recorders).map(share).max(), Some(largest_share(streams, recorders) as usize));
    }
    assert_eq!((largest_share(54, 4), largest_share(3, 0)), (19, 0));
}
