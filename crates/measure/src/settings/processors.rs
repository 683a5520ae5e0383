//! CPU settings: governor, boost, idle states, NUMA nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::line;
use crate::environment::{Cpu, Reading, flag};
use crate::text;

const CORES: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";
/// Plausibility limit for core numbers; the kernel's own limit is 8192.
const CORE_MAX: u32 = 65_535;

/// CPU settings and topology.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Processors {
    /// Online cores.
    pub online: Reading<CoreList>,
    /// Active frequency governors, sorted, comma-separated.
    pub governor: Reading<String>,
    /// Frequency driver.
    pub frequency_driver: Reading<String>,
    /// Whether cores may exceed their base frequency.
    pub may_boost: Reading<bool>,
    /// Idle states of the first core, lightest first.
    pub idle_states: Vec<IdleState>,
    /// Cores excluded from general scheduling.
    pub isolated: Reading<CoreList>,
    /// NUMA nodes by number.
    pub nodes: BTreeMap<u64, Node>,
}

/// An idle state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleState {
    /// Name.
    pub name: String,
    /// Wake-up latency, µs.
    pub latency_us: Reading<u64>,
    /// Whether it is disabled.
    pub is_off: Reading<bool>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Node {
    /// Cores of the node.
    pub cores: Reading<CoreList>,
    /// Distances to the memory of all nodes by number; 10 for its own.
    pub distances: Reading<Vec<u64>>,
}

/// Set of core numbers, in the kernel's notation: `0-3,8`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoreList(pub BTreeSet<u32>);

impl CoreList {
    /// Parses `0-3,8`; an empty text is an empty set. `None` if malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cores = BTreeSet::new();
        for part in text.trim().split(',').filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            if first > last || last > CORE_MAX {
                return None;
            }
            cores.extend(first..=last);
        }
        Some(Self(cores))
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &core in &self.0 {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == core => *last = core,
                _ => ranges.push((core, core)),
            }
        }
        let ranges = ranges.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        f.write_str(&ranges.collect::<Vec<_>>().join(","))
    }
}

impl Serialize for CoreList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Processors {
    pub(super) fn collect(root: &Path) -> Self {
        let boost = flag(root, format!("{CORES}/cpufreq/boost"));
        let may_boost = match boost {
            Reading::NotReadable(_) => flag(root, format!("{CORES}/intel_pstate/no_turbo")).map(|off| !off),
            boost => boost,
        };
        Self {
            online: cores(root, format!("{CORES}/online")),
            governor: Cpu::collect(root).governor,
            frequency_driver: line(root, format!("{CORES}/cpu0/cpufreq/scaling_driver")),
            may_boost,
            idle_states: idle_states(root),
            isolated: cores(root, format!("{CORES}/isolated")),
            nodes: nodes(root),
        }
    }
}

/// Reads a file with a list of cores.
fn cores(root: &Path, relative: impl AsRef<Path>) -> Reading<CoreList> {
    let list = |text: String| CoreList::parse(&text).ok_or_else(|| format!("{text:?} is no list of cores"));
    line(root, relative).and_then(list)
}

fn idle_states(root: &Path) -> Vec<IdleState> {
    let directory = format!("{CORES}/cpu0/cpuidle");
    let mut numbers: Vec<u32> = numbered(root, &directory, "state");
    numbers.sort_unstable();
    let state = |number| {
        let file = |name: &str| format!("{directory}/state{number}/{name}");
        Some(IdleState {
            name: text::read_trimmed(root, file("name")).ok()?,
            latency_us: text::read_number(root, file("latency")).into(),
            is_off: flag(root, file("disable")),
        })
    };
    numbers.into_iter().filter_map(state).collect()
}

fn nodes(root: &Path) -> BTreeMap<u64, Node> {
    let numbers: Vec<u64> = numbered(root, NODES, "node");
    let node = |number| {
        let distances = line(root, format!("{NODES}/node{number}/distance"));
        let distances = distances.and_then(|text| {
            let numbers: Option<Vec<u64>> = text.split_whitespace().map(|n| n.parse().ok()).collect();
            numbers.ok_or_else(|| format!("{text:?} are no distances"))
        });
        (number, Node { cores: cores(root, format!("{NODES}/node{number}/cpulist")), distances })
    };
    numbers.into_iter().map(node).collect()
}

/// Numbers of directory entries named `prefix` plus a number.
fn numbered<N: std::str::FromStr>(root: &Path, directory: &str, prefix: &str) -> Vec<N> {
    let names = text::names(root, directory).unwrap_or_default();
    names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect()
}
