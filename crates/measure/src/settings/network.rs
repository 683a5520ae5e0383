//! Limits on sockets, and how interfaces hand over what they receive.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::processors::CoreList;
use super::{line, parsed, upwards};
use crate::environment::{self, Reading, number};
use crate::net::{SoftnetCounters, parse_softnet};
use crate::text;

const INTERFACES: &str = "sys/class/net";

/// Limits on sockets and on the receive work of the cores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sockets {
    /// Largest receive buffer a program may ask for, in bytes.
    pub rmem_max: Reading<u64>,
    /// Receive buffer of a program that asks for none, in bytes.
    pub rmem_default: Reading<u64>,
    /// Largest send buffer a program may ask for, in bytes.
    pub wmem_max: Reading<u64>,
    /// TCP receive buffer: least, first and most, in bytes.
    pub tcp_rmem: Reading<[u64; 3]>,
    /// TCP send buffer: least, first and most, in bytes.
    pub tcp_wmem: Reading<[u64; 3]>,
    /// Memory of all UDP sockets: fair share, pressure and most, in pages.
    pub udp_mem: Reading<[u64; 3]>,
    /// Packets that may wait for a core before they are dropped.
    pub netdev_max_backlog: Reading<u64>,
    /// Packets that a core takes from all interfaces in one turn.
    pub netdev_budget: Reading<u64>,
    /// How long such a turn may take, in µs.
    pub netdev_budget_usecs: Reading<u64>,
    /// Connections that may wait to be accepted.
    pub somaxconn: Reading<u64>,
    /// What the cores did with packets since boot.
    pub softnet: Reading<SoftnetCounters>,
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interface {
    /// What the environment record has of it.
    #[serde(flatten)]
    pub basics: environment::Interface,
    /// Whether there is a card behind it.
    pub is_card: bool,
    /// The NUMA node that its card is in; not readable where the machine has one node.
    pub node: Reading<u64>,
    /// Cores of that node.
    pub local_cores: Reading<CoreList>,
    /// Queues that it receives into.
    pub receive_queues: Reading<u64>,
    /// Whether any of them is spread over cores by software (RPS).
    pub is_spread: Reading<bool>,
    /// Its interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Its place in the machine.
    pub link: Link,
}

/// One interrupt of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Its number.
    pub number: u64,
    /// What it is called in /proc/interrupts.
    pub name: String,
    /// How often it came since boot.
    pub count: u64,
    /// Cores that may serve it; where the kernel tells, the one that does.
    pub cores: Option<CoreList>,
}

/// The PCI Express link of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Billions of transfers per second and lane, now.
    pub gigatransfers: Reading<f64>,
    /// Lanes in use.
    pub lanes: Reading<u64>,
    /// Transfers that the device could make.
    pub gigatransfers_max: Reading<f64>,
    /// Lanes that the device has.
    pub lanes_max: Reading<u64>,
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

/// Names of all interfaces of this network name space, sorted.
pub fn interface_names(root: &Path) -> Vec<String> {
    let mut names = text::names(root, INTERFACES).unwrap_or_default();
    // A file beside the directories (`bonding_masters`) is no interface.
    names.retain(|name| root.join(INTERFACES).join(name).join("mtu").exists());
    names
}

impl Interface {
    /// Reads what there is to know of the interface called `name`. `root` is `/` in earnest.
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

impl Link {
    pub(super) fn collect(root: &Path, device: &Path) -> Self {
        let speed = |name: &str| {
            // "8.0 GT/s PCIe"
            upwards(root, device, name).and_then(|text| {
                let number = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
                number.filter(|n: &f64| n.is_finite() && *n > 0.0).ok_or_else(|| format!("{name} is {text}"))
            })
        };
        let lanes = |name: &str| {
            upwards(root, device, name).and_then(|text| {
                text.parse().ok().filter(|lanes| *lanes > 0).ok_or_else(|| format!("{name} is {text}"))
            })
        };
        Self {
            gigatransfers: speed("current_link_speed"),
            lanes: lanes("current_link_width"),
            gigatransfers_max: speed("max_link_speed"),
            lanes_max: lanes("max_link_width"),
        }
    }
}

/// Interrupts of a card: those that its slot lists, or else those that bear its name.
fn interrupts(root: &Path, device: &Path, name: &str) -> Vec<Interrupt> {
    let known = text::read(root, "proc/interrupts").map(|text| parse_interrupts(&text)).unwrap_or_default();
    let own = |place: &Path| text::names(root, place.join("msi_irqs")).ok();
    // A virtual card hangs below the device that has the slot.
    let listed = own(device).or_else(|| own(&device.join("..")));
    let listed: Option<BTreeSet<u64>> =
        listed.map(|names| names.iter().filter_map(|name| name.parse().ok()).collect());
    let queue_of = |known: &str| {
        let rest = known.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@', '.']))
    };
    let mine = |interrupt: &Interrupt| match &listed {
        // Interrupts for events of the card itself carry no data.
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

/// Numbered lines of /proc/interrupts (proc_interrupts(5)): one counter for each core, then words of which
/// the last is the name. Cores are not in it.
pub fn parse_interrupts(text: &str) -> Vec<Interrupt> {
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
