//! Places of clients: who has to go when all are taken.
use std::net::{IpAddr, Ipv4Addr};

use super::*;

fn peer(standing: Standing) -> Peer {
    let peer = Peer::new(IpAddr::V4(Ipv4Addr::LOCALHOST));
    peer.raise(standing);
    peer
}

fn is_closed(peer: &Peer) -> bool {
    let mut closed = std::pin::pin!(peer.closed());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    closed.as_mut().poll(&mut context).is_ready()
}

#[test]
fn the_oldest_of_the_least_trusted_goes() {
    let places = Places::new(4);
    let standings = [Standing::Known, Standing::Anonymous, Standing::Silent, Standing::Silent];
    let peers = standings.map(peer);
    let held: Vec<Option<Place>> = peers.iter().map(|peer| places.enter(peer, |_| true)).collect();
    assert!(held.iter().all(Option::is_some));
    let unknown = |standing| standing < Standing::Known;
    for goes in [2, 3, 1] {
        let known = peer(Standing::Known);
        std::mem::forget(places.enter(&known, unknown).unwrap());
        assert!(is_closed(&peers[goes]), "{goes}");
    }
    assert!(places.enter(&peer(Standing::Silent), unknown).is_none(), "only known ones are left");
    assert!(!is_closed(&peers[0]));
}

#[test]
fn a_place_is_free_again_once_it_is_dropped() {
    let places = Places::new(1);
    let first = places.enter(&peer(Standing::Known), |_| false).unwrap();
    assert!(places.enter(&peer(Standing::Known), |_| false).is_none());
    drop(first);
    assert!(places.enter(&peer(Standing::Silent), |_| false).is_some());
}

#[test]
fn a_standing_never_falls() {
    let peer = peer(Standing::Known);
    peer.raise(Standing::Anonymous);
    assert_eq!(peer.standing(), Standing::Known);
}
