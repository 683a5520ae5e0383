//! Facts about a host, from kernel files below a root directory.
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use keepup_measure::environment::Environment;
use keepup_measure::settings::{Interface, interface_names};
use keepup_results::{HostFacts, InterfaceFacts, VolumeFacts};
use keepup_sys::addresses::interface_of;
use keepup_sys::timekeeping::clock_discipline;
use keepup_workload::doctor::Route;

use super::clock;
use super::path::interface;
use crate::message::VERSION;

/// Collects the facts, except the paths. `root` is `/` outside tests.
pub(super) fn collect(root: &Path, volumes: &[PathBuf], interfaces: &BTreeSet<String>) -> HostFacts {
    let found = Environment::collect(volumes, root);
    HostFacts {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        message_version: VERSION,
        kernel: found.kernel.release.value().cloned(),
        cores: found.cpu.logical_cores.value().copied(),
        memory_bytes: found.memory.total_bytes.value().copied(),
        memlock: found.memory.memlock_limit.value().cloned(),
        clock: clock::collect(root, clock_discipline().ok()),
        interfaces: interfaces.iter().map(|name| interface_facts(root, name)).collect(),
        volumes: found
            .volumes
            .iter()
            .map(|volume| VolumeFacts {
                path: volume.path.clone(),
                free_bytes: volume.free.value().map(|free| free.bytes),
                size_bytes: volume.size_bytes.value().copied(),
            })
            .collect(),
        paths: Vec::new(),
    }
}

fn interface_facts(root: &Path, name: &str) -> InterfaceFacts {
    let found = Interface::collect(root, name).basics;
    let clocks = root.join("sys/class/net").join(name).join("device/ptp");
    let clocks = std::fs::read_dir(clocks).into_iter().flatten().flatten();
    InterfaceFacts {
        name: name.to_owned(),
        mtu: found.mtu.value().copied(),
        speed_mbit: found.speed_mbit.value().copied(),
        driver: found.driver.value().cloned(),
        state: found.state.value().cloned(),
        hardware_clock: clocks.filter_map(|clock| clock.file_name().into_string().ok()).min(),
    }
}

/// Interfaces that carry data: those with the host's own `data` address, or on the routes to `peers`.
pub(super) fn data_interfaces(root: &Path, data: Option<IpAddr>, peers: &[IpAddr]) -> BTreeSet<String> {
    let own = data.and_then(|address| interface_of(address).ok().flatten());
    let routes = peers.iter().filter_map(|peer| interface(&Route::to(root, *peer).ok()?));
    let mut names: BTreeSet<String> = own.into_iter().chain(routes).collect();
    // A container may hide the interfaces of its network in /sys.
    let known = interface_names(root);
    names.retain(|name| known.contains(name));
    names
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
