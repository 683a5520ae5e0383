//! Gathers the settings that decide loss on this host, from the kernel's files, the cards and the route.
//!
//! Invariants: nothing is changed and nothing is sent; what cannot be read says why.
mod route;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use keepup_measure::environment::Reading;
use keepup_measure::settings::{Interface, Settings, interface_names};
use keepup_sys::SysError;
use keepup_sys::ethtool;
use serde::Serialize;

use crate::WorkloadError;
use crate::error::VolumeTrouble;
pub use route::Route;

/// What is looked at.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Directories that take data.
    pub volumes: Vec<PathBuf>,
    /// Interfaces that the data comes through; chosen when empty.
    pub interfaces: Vec<String>,
    /// Who sends.
    pub peer: Option<IpAddr>,
}

/// Everything that was read.
#[derive(Clone, Debug, Serialize)]
pub struct Readings {
    /// Settings of the host.
    pub settings: Settings,
    /// The interfaces that are judged, by name.
    pub interfaces: BTreeMap<String, Port>,
    /// Why these, where they were not named.
    pub chosen: Option<String>,
    /// The way to the sender, if one was named.
    pub route: Option<Route>,
}

/// An interface with what its driver says.
#[derive(Clone, Debug, Serialize)]
pub struct Port {
    /// What the kernel's files have of it.
    #[serde(flatten)]
    pub interface: Interface,
    /// What its driver has of it.
    pub card: Card,
}

/// What a driver says of its card.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// Packets that it may hold in each receive queue.
    pub ring: Reading<u32>,
    /// The most of these.
    pub ring_max: Reading<u32>,
    /// The most receive queues it could have.
    pub queues_max: Reading<u32>,
    /// Whether its queues are set as `combined`.
    pub has_combined_queues: Reading<bool>,
    /// Whether it obeys pause frames.
    pub pause_receive: Reading<bool>,
    /// Whether it sends them.
    pub pause_send: Reading<bool>,
    /// Generic receive offload.
    pub gro: Reading<bool>,
    /// Large receive offload.
    pub lro: Reading<bool>,
    /// Generic segmentation offload.
    pub gso: Reading<bool>,
    /// TCP segmentation offload.
    pub tso: Reading<bool>,
    /// Whether it checks checksums.
    pub receive_checksum: Reading<bool>,
}

impl Card {
    /// Asks the driver of the interface called `name`.
    pub(crate) fn collect(name: &str) -> Self {
        fn ask<T>(name: &str, what: impl Fn(&ethtool::Card) -> Result<T, SysError>) -> Reading<T> {
            match ethtool::Card::open(name).and_then(|card| what(&card)) {
                Ok(value) => Reading::Value(value),
                Err(why) => Reading::NotReadable(why.to_string()),
            }
        }
        // A driver that knows no limit answers with zeros.
        let ring = |part: fn(ethtool::Ring) -> u32| match ask(name, |card| card.ring().map(part)) {
            Reading::Value(0) => Reading::NotReadable("the driver names no ring size".into()),
            read => read,
        };
        Self {
            ring: ring(|ring| ring.receive),
            ring_max: ring(|ring| ring.receive_max),
            queues_max: ask(name, |card| card.channels().map(|channels| channels.receive_max)),
            has_combined_queues: ask(name, |card| card.channels().map(|channels| channels.is_combined)),
            pause_receive: ask(name, |card| card.pause().map(|pause| pause.receive)),
            pause_send: ask(name, |card| card.pause().map(|pause| pause.send)),
            gro: ask(name, ethtool::Card::gro),
            lro: ask(name, ethtool::Card::lro),
            gso: ask(name, ethtool::Card::gso),
            tso: ask(name, ethtool::Card::tso),
            receive_checksum: ask(name, ethtool::Card::receive_checksum),
        }
    }
}

/// Reads all that `scope` names. `root` is `/` in earnest.
///
/// Fails when a volume is no directory, an interface does not exist, or no route leads to the peer.
pub fn gather(scope: &Scope, root: &Path) -> Result<Readings, WorkloadError> {
    for volume in &scope.volumes {
        is_directory(volume)?;
    }
    let names = interface_names(root);
    if let Some(unknown) = scope.interfaces.iter().find(|name| !names.contains(name)) {
        return Err(WorkloadError::Interface { name: unknown.clone(), known: names.join(", ") });
    }
    let route = scope.peer.map(|peer| Route::to(root, peer)).transpose()?;
    let (judged, chosen) = match (&scope.interfaces[..], route.as_ref().and_then(|r| r.interface.value())) {
        ([], Some(interface)) => {
            (vec![interface.clone()], Some(format!("{interface}: the way to the peer leads through it")))
        }
        ([], None) => choose(root, &names),
        (given, _) => (given.to_vec(), None),
    };
    let port = |name: String| {
        let port = Port { interface: Interface::collect(root, &name), card: Card::collect(&name) };
        (name, port)
    };
    Ok(Readings {
        settings: Settings::collect(root, &scope.volumes),
        interfaces: judged.into_iter().map(port).collect(),
        chosen,
        route,
    })
}

/// The fastest of the cards that are up, which a stream will most likely come through.
fn choose(root: &Path, names: &[String]) -> (Vec<String>, Option<String>) {
    let cards = names.iter().map(|name| (name, Interface::collect(root, name)));
    let up: Vec<_> = cards
        .filter(|(_, card)| card.is_card && card.basics.state.value().is_some_and(|state| state == "up"))
        .collect();
    let speed = |card: &Interface| card.basics.speed_mbit.value().copied();
    let fastest = up.iter().filter_map(|(_, card)| speed(card)).max();
    let judged: Vec<String> =
        up.iter().filter(|(_, card)| speed(card) == fastest).map(|(name, _)| (*name).clone()).collect();
    let why = match (judged.len(), fastest) {
        (0, _) => "no interface with a card is up, so none is judged".into(),
        (_, None) => format!("{}: the card that is up", judged.join(", ")),
        (_, Some(_)) => format!("{}: the fastest card that is up", judged.join(", ")),
    };
    (judged, Some(why))
}

fn is_directory(path: &Path) -> Result<(), WorkloadError> {
    let why = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "it is not a directory".to_owned(),
        Err(e) => {
            format!("{e}\nhint: mkdir -p {}, or name the directory that will take the data", path.display())
        }
    };
    Err(WorkloadError::Volume { path: path.into(), why, trouble: VolumeTrouble::Missing })
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
