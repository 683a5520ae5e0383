//! Collects the host settings that affect losses, from kernel files, network drivers, disks and the
//! routing table.
//!
//! Invariants: nothing is changed or sent; unreadable values carry the reason.
mod route;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_measure::environment::Reading;
use keepup_measure::settings::{Interface, Settings, interface_names};
use keepup_results::DiskWear;
use keepup_results::shell::quoted;
use keepup_sys::SysError;
use keepup_sys::ethtool;
use serde::Serialize;

use crate::WorkloadError;
use crate::error::VolumeTrouble;
use crate::wear::disk_wear;
pub use route::Route;

/// What to inspect.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Directories for the data.
    pub volumes: Vec<PathBuf>,
    /// Interfaces that receive the data; chosen automatically if empty.
    pub interfaces: Vec<String>,
    /// Address of the sender.
    pub peer: Option<IpAddr>,
}

/// All readings.
#[derive(Clone, Debug, Serialize)]
pub struct Readings {
    /// Settings of the host.
    pub settings: Settings,
    /// Readings of the judged interfaces, by name.
    pub interfaces: BTreeMap<String, Port>,
    /// Reason for the automatic choice of interfaces.
    pub chosen: Option<String>,
    /// Route to the sender, if one was named.
    pub route: Option<Route>,
    /// Wear of the volumes' disks, by kernel name.
    pub wear: BTreeMap<String, Reading<DiskWear>>,
}

/// Readings of an interface.
#[derive(Clone, Debug, Serialize)]
pub struct Port {
    /// Readings from kernel files.
    #[serde(flatten)]
    pub interface: Interface,
    /// Readings from the driver.
    pub card: Card,
}

/// Driver settings of a network card.
#[derive(Clone, Debug, Serialize)]
pub struct Card {
    /// Receive ring size, packets.
    pub ring: Reading<u32>,
    /// Maximum receive ring size.
    pub ring_max: Reading<u32>,
    /// Maximum number of receive queues.
    pub queues_max: Reading<u32>,
    /// Whether queues are configured as `combined`.
    pub has_combined_queues: Reading<bool>,
    /// Whether it obeys pause frames.
    pub pause_receive: Reading<bool>,
    /// Whether it sends pause frames.
    pub pause_send: Reading<bool>,
    /// Generic receive offload.
    pub gro: Reading<bool>,
    /// Large receive offload.
    pub lro: Reading<bool>,
    /// Generic segmentation offload.
    pub gso: Reading<bool>,
    /// TCP segmentation offload.
    pub tso: Reading<bool>,
    /// Receive checksum offload.
    pub receive_checksum: Reading<bool>,
}

impl Card {
    /// Queries the driver of interface `name`.
    pub(crate) fn collect(name: &str) -> Self {
        fn ask<T>(name: &str, what: impl Fn(&ethtool::Card) -> Result<T, SysError>) -> Reading<T> {
            match ethtool::Card::open(name).and_then(|card| what(&card)) {
                Ok(value) => Reading::Value(value),
                Err(why) => Reading::NotReadable(why.to_string()),
            }
        }
        // Drivers without a known limit report 0.
        let ring = |part: fn(ethtool::Ring) -> u32| match ask(name, |card| card.ring().map(part)) {
            Reading::Value(0) => Reading::NotReadable("the driver reports no ring size".into()),
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

/// Reads everything in `scope`. `root` is `/` outside tests.
///
/// Fails if a volume is not a directory, an interface does not exist, or there is no route to the
/// peer.
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
            (vec![interface.clone()], Some(format!("{interface}: on the route to the peer")))
        }
        ([], None) => choose(root, &names),
        (given, _) => (given.to_vec(), None),
    };
    let port = |name: String| {
        let port = Port { interface: Interface::collect(root, &name), card: Card::collect(&name) };
        (name, port)
    };
    let settings = Settings::collect(root, &scope.volumes);
    let disks = settings.volumes.iter().flat_map(|volume| volume.queues.keys());
    Ok(Readings {
        wear: disks.map(|disk| (disk.clone(), disk_wear(disk))).collect(),
        settings,
        interfaces: judged.into_iter().map(port).collect(),
        chosen,
        route,
    })
}

/// The fastest cards that are up, which most likely receive the stream.
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
        (0, _) => "no network card is up, so none is judged".into(),
        (_, None) => format!("{}: the only card that is up", judged.join(", ")),
        (_, Some(_)) => format!("{}: the fastest card that is up", judged.join(", ")),
    };
    (judged, Some(why))
}

fn is_directory(path: &Path) -> Result<(), WorkloadError> {
    let why = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "it is not a directory".into(),
        Err(e) => {
            let made = quoted(&path.display().to_string());
            let hint = format!("mkdir -p {made}, or name the directory for the data");
            Cause::new(e.to_string()).with_hint(hint)
        }
    };
    Err(WorkloadError::Volume { path: path.into(), why, trouble: VolumeTrouble::Missing })
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
