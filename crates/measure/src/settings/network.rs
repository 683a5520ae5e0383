//! Socket limits and receive settings of interfaces.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::processors::CoreList;
use super::{line, parsed};
use crate::environment::{self, Link, Reading, number, upwards};
use crate::net::{SoftnetCounters, parse_softnet};
use crate::text;

const INTERFACES: &str = "sys/class/net";

/// Socket limits and receive limits of the cores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sockets {
    /// Maximum receive buffer of a socket, bytes.
    pub rmem_max: Reading<u64>,
    /// Default receive buffer of a socket, bytes.
    pub rmem_default: Reading<u64>,
    /// Maximum send buffer of a socket, bytes.
    pub wmem_max: Reading<u64>,
    /// TCP receive buffer: minimum, default and maximum, bytes.
    pub tcp_rmem: Reading<[u64; 3]>,
    /// TCP send buffer: minimum, default and maximum, bytes.
    pub tcp_wmem: Reading<[u64; 3]>,
    /// Memory of all UDP sockets: low, pressure and maximum, pages.
    pub udp_mem: Reading<[u64; 3]>,
    /// Maximum length of a core's backlog queue, packets.
    pub netdev_max_backlog: Reading<u64>,
    /// Packets per receive turn of a core.
    pub netdev_budget: Reading<u64>,
    /// Maximum duration of a receive turn, µs.
    pub netdev_budget_usecs: Reading<u64>,
    /// Maximum number of connections waiting to be accepted.
    pub somaxconn: Reading<u64>,
    /// Receive counters of the cores since boot.
    pub softnet: Reading<SoftnetCounters>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interface {
    /// Settings shared with the environment record.
    #[serde(flatten)]
    pub basics: environment::Interface,
    /// Whether it is a hardware interface.
    pub is_card: bool,
    /// NUMA node of the card; not readable on machines with one node.
    pub node: Reading<u64>,
    /// Cores of that node.
    pub local_cores: Reading<CoreList>,
    /// Receive queues.
    pub receive_queues: Reading<u64>,
    /// Whether any queue is distributed over cores by software (RPS).
    pub is_spread: Reading<bool>,
    /// Interrupts of the card.
    pub interrupts: Vec<Interrupt>,
    /// PCI Express link of the card.
    pub link: Link,
}

/// One interrupt of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Interrupt number.
    pub number: u64,
    /// Name in /proc/interrupts.
    pub name: String,
    /// Count since boot.
    pub count: u64,
    /// Cores that may serve it, or the one that does if known.
    pub cores: Option<CoreList>,
}

impl Sockets {
    pub(super) fn collect(root: &Path) -> Self {
        let core = |name: &str| number(root, Path::new("proc/sys/net/core").join(name));
        let ipv4 = |name: &str| {
            let file = Path::new("proc/sys/net/ipv4").join(name);
            parsed(root, file, "it does not hold three numbers", three)
        };
        Self {
            rmem_max: core("rmem_max"),
            rmem_default: core("rmem_default"),
            wmem_max: core("wmem_max"),
            tcp_rmem: ipv4("tcp_rmem"),
            tcp_wmem: ipv4("tcp_wmem"),
            udp_mem: ipv4("udp_mem"),
            netdev_max_backlog: core("netdev_max_backlog"),
            netdev_budget: core("netdev_budget"),
            netdev_budget_usecs: core("netdev_budget_usecs"),
            somaxconn: core("somaxconn"),
            softnet: text::read(root, "proc/net/softnet_stat").map(|text| parse_softnet(&text)).into(),
        }
    }
}

fn three(text: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = text.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

/// Names of all interfaces of this network namespace, sorted.
pub fn interface_names(root: &Path) -> Vec<String> {
    let mut names = text::names(root, INTERFACES).unwrap_or_default();
    // Plain files among the directories (`bonding_masters`) are not interfaces.
    names.retain(|name| root.join(INTERFACES).join(name).join("mtu").exists());
    names
}

/// Cores of the NUMA node with the network cards that are up, and the names of these cards.
///
/// `None` on a machine with one node, or if the cards are on several nodes. `root` is `/` outside tests.
pub fn cores_near_cards(root: &Path) -> Option<(CoreList, Vec<String>)> {
    let nodes = text::names(root, "sys/devices/system/node").ok()?;
    if nodes.iter().filter(|name| name.starts_with("node")).count() < 2 {
        return None;
    }
    let interfaces = interface_names(root).into_iter().map(|name| (Interface::collect(root, &name), name));
    let is_up = |interface: &Interface| interface.basics.state.value().is_some_and(|state| state == "up");
    let cards = interfaces.filter(|(interface, _)| interface.is_card && is_up(interface));
    let cards = cards.map(|(interface, name)| Some((interface.local_cores.value()?.clone(), name)));
    let (cores, names): (Vec<_>, Vec<_>) = cards.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let near = cores.first().filter(|near| !near.0.is_empty() && cores.iter().all(|other| other == *near))?;
    Some((near.clone(), names))
}

impl Interface {
    /// Reads the settings of interface `name`. `root` is `/` outside tests.
    pub fn collect(root: &Path, name: &str) -> Self {
        let directory = Path::new(INTERFACES).join(name);
        let device = directory.join("device");
        let queues = receive_queues(root, &directory);
        let is_spread = queues.clone().map(|queues| {
            let mask = |queue: &String| line(root, directory.join("queues").join(queue).join("rps_cpus"));
            let has_bit = |mask: Reading<String>| {
                mask.value().is_some_and(|mask| mask.chars().any(|c| c.is_ascii_hexdigit() && c != '0'))
            };
            queues.iter().map(mask).any(has_bit)
        });
        let node = upwards(root, &device, "numa_node");
        let local = upwards(root, &device, "local_cpulist");
        Self {
            basics: environment::Interface::collect(root, name),
            is_card: root.join(&device).exists(),
            node: node.and_then(|node| node.parse().map_err(|_| format!("its node is {node}: the only one"))),
            local_cores: local.and_then(|list| {
                CoreList::parse(&list).ok_or_else(|| format!("{list:?} is no list of cores"))
            }),
            receive_queues: queues.map(|queues| queues.len() as u64),
            is_spread,
            interrupts: interrupts(root, &device, name),
            link: Link::collect(root, &device),
        }
    }
}

fn receive_queues(root: &Path, directory: &Path) -> Reading<Vec<String>> {
    let names = text::names(root, directory.join("queues"));
    names.map(|names| names.into_iter().filter(|name| name.starts_with("rx-")).collect()).into()
}

/// Interrupts of a card: listed by its slot, or else found by name.
fn interrupts(root: &Path, device: &Path, name: &str) -> Vec<Interrupt> {
    let known = text::read(root, "proc/interrupts").map(|text| parse_interrupts(&text)).unwrap_or_default();
    let own = |place: &Path| text::names(root, place.join("msi_irqs")).ok();
    // A virtual card is a child of the device in the slot.
    let listed = own(device).or_else(|| own(&device.join("..")));
    let listed: Option<BTreeSet<u64>> =
        listed.map(|names| names.iter().filter_map(|name| name.parse().ok()).collect());
    let queue_of = |known: &str| {
        let rest = known.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@', '.']))
    };
    let mine = |interrupt: &Interrupt| match &listed {
        // Configuration interrupts of the card carry no data.
        Some(listed) => listed.contains(&interrupt.number) && !interrupt.name.contains("config"),
        None => queue_of(&interrupt.name),
    };
    let cores = |number: u64| {
        let file = |name: &str| {
            let read = text::read_trimmed(root, format!("proc/irq/{number}/{name}")).ok();
            read.and_then(|list| CoreList::parse(&list))
        };
        file("effective_affinity_list").or_else(|| file("smp_affinity_list"))
    };
    let with_cores = |interrupt: Interrupt| Interrupt { cores: cores(interrupt.number), ..interrupt };
    known.into_iter().filter(mine).map(with_cores).collect()
}

/// Parses the numbered lines of /proc/interrupts (proc_interrupts(5)): one counter per core, then
/// words of which the last is the name. Affinities are not included.
pub(crate) fn parse_interrupts(text: &str) -> Vec<Interrupt> {
    let cores = text.lines().next().unwrap_or_default().split_ascii_whitespace().count();
    let interrupt = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let counts = words.iter().take(cores).map_while(|word| word.parse::<u64>().ok());
        Some(Interrupt {
            number: number.trim().parse().ok()?,
            name: words.last().filter(|_| words.len() > cores).map(|name| (*name).to_owned())?,
            count: counts.fold(0, u64::saturating_add),
            cores: None,
        })
    };
    text.lines().skip(1).filter_map(interrupt).collect()
}
