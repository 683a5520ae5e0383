//! Network interfaces and the kernel's socket limits.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Reading, number, words};
use crate::text;

const INTERFACES: &str = "sys/class/net";

/// Network of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Interfaces by name, without the short-lived pairs of container engines (`veth…`).
    pub interfaces: BTreeMap<String, Interface>,
    /// Maximum receive buffer of a socket, bytes.
    pub rmem_max: Reading<u64>,
    /// Maximum send buffer of a socket, bytes.
    pub wmem_max: Reading<u64>,
    /// TCP receive buffer: minimum, default and maximum, bytes.
    pub tcp_rmem: Reading<String>,
    /// TCP send buffer: minimum, default and maximum, bytes.
    pub tcp_wmem: Reading<String>,
    /// TCP congestion control.
    pub congestion_control: Reading<String>,
    /// Maximum length of a core's backlog queue, packets.
    pub backlog_packets_max: Reading<u64>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interface {
    /// MTU, bytes.
    pub mtu: Reading<u64>,
    /// Link speed, Mbit/s, if the link is up and has one.
    pub speed_mbit: Reading<u64>,
    /// Driver of the card; not readable for virtual interfaces.
    pub driver: Reading<String>,
    /// `up`, `down`, or `unknown` for interfaces without a carrier (loopback).
    pub state: Reading<String>,
}

impl Network {
    pub(super) fn collect(root: &Path) -> Self {
        let sysctl = Path::new("proc/sys/net");
        let (core, ipv4) = (sysctl.join("core"), sysctl.join("ipv4"));
        let names = text::names(root, INTERFACES).unwrap_or_default();
        // Plain files among the directories (`bonding_masters`) are not interfaces.
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
