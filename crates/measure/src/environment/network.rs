//! Interfaces and the kernel's limits on sockets.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Reading, number, words};
use crate::text;

const INTERFACES: &str = "sys/class/net";

/// The network of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Each interface by name. The pairs that container engines make and remove (`veth…`) are left out.
    pub interfaces: BTreeMap<String, Interface>,
    /// Largest receive buffer a program may ask for, in bytes.
    pub rmem_max: Reading<u64>,
    /// Largest send buffer a program may ask for, in bytes.
    pub wmem_max: Reading<u64>,
    /// TCP receive buffer: least, first and most, in bytes.
    pub tcp_rmem: Reading<String>,
    /// TCP send buffer: least, first and most, in bytes.
    pub tcp_wmem: Reading<String>,
    /// TCP congestion control.
    pub congestion_control: Reading<String>,
    /// Packets that may wait for a core before they are dropped.
    pub backlog_packets_max: Reading<u64>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// Largest packet, in bytes.
    pub mtu: Reading<u64>,
    /// Speed of the link in Mbit/s, where there is a link that has one.
    pub speed_mbit: Reading<u64>,
    /// Driver of the card; not readable for interfaces without a card.
    pub driver: Reading<String>,
    /// `up`, `down`, or `unknown` for interfaces without a carrier (the loopback).
    pub state: Reading<String>,
}

impl Network {
    pub(super) fn collect(root: &Path) -> Self {
        let sysctl = Path::new("proc/sys/net");
        let (core, ipv4) = (sysctl.join("core"), sysctl.join("ipv4"));
        let names = text::names(root, INTERFACES).unwrap_or_default();
        // A file beside the directories (`bonding_masters`) is no interface.
        let interfaces = names.into_iter().filter(|name| {
            !name.starts_with("veth") && root.join(INTERFACES).join(name).join("mtu").exists()
        });
        Self {
            interfaces: interfaces.map(|name| (name.clone(), Interface::collect(root, &name))).collect(),
            rmem_max: number(root, core.join("rmem_max")),
            wmem_max: number(root, core.join("wmem_max")),
            tcp_rmem: words(root, ipv4.join("tcp_rmem")),
            tcp_wmem: words(root, ipv4.join("tcp_wmem")),
            congestion_control: words(root, ipv4.join("tcp_congestion_control")),
            backlog_packets_max: number(root, core.join("netdev_max_backlog")),
        }
    }
}

impl Interface {
    pub(crate) fn collect(root: &Path, name: &str) -> Self {
        let directory = Path::new(INTERFACES).join(name);
        Self {
            mtu: number(root, directory.join("mtu")),
            speed_mbit: number(root, directory.join("speed")),
            driver: text::link_name(root.join(&directory).join("device/driver")).into(),
            state: words(root, directory.join("operstate")),
        }
    }
}
