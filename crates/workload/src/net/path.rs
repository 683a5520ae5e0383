//! Network interfaces through which an end reaches its peers, and their settings.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use keepup_measure::environment::Reading;
use keepup_measure::settings::Interface;
use keepup_results::NetInterface;

use crate::doctor::{Card, Route};

/// The interfaces towards `peers`, each once, sorted by name; unknown ones are omitted.
pub(super) fn interfaces(peers: impl IntoIterator<Item = IpAddr>) -> Vec<NetInterface> {
    let root = Path::new("/");
    // A dual-stack server sees IPv4 peers as IPv4-mapped IPv6 addresses.
    let peers: BTreeSet<IpAddr> = peers.into_iter().map(|peer| peer.to_canonical()).collect();
    let routes = peers.into_iter().filter_map(|peer| Route::to(root, peer).ok());
    let names: BTreeSet<String> = routes.filter_map(|route| route.interface.value().cloned()).collect();
    names.into_iter().map(|name| interface(root, name)).collect()
}

fn interface(root: &Path, name: String) -> NetInterface {
    let (card, basics) = (Card::collect(&name), Interface::collect(root, &name).basics);
    let number = |reading: Reading<u64>| reading.value().copied();
    let is_on = |reading: Reading<bool>| reading.value().copied();
    NetInterface {
        name,
        mtu_bytes: number(basics.mtu),
        speed_mbit: number(basics.speed_mbit),
        tso: is_on(card.tso),
        gso: is_on(card.gso),
        gro: is_on(card.gro),
        lro: is_on(card.lro),
        receive_checksum: is_on(card.receive_checksum),
    }
}
