//! Hardware, CPUs, memory and operating system.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Reading, chosen, flag, memory, number, words};
use crate::error::MeasureError;
use crate::text;

const CORES: &str = "sys/devices/system/cpu";

/// Hardware.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Vendor.
    pub vendor: Reading<String>,
    /// Product name.
    pub product: Reading<String>,
    /// Main board.
    pub board: Reading<String>,
    /// Firmware version.
    pub firmware: Reading<String>,
    /// Whether it is a virtual machine, as far as detectable.
    pub virtualised: Reading<bool>,
    /// Container of this process; `none` outside.
    pub container: String,
}

/// CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Architecture of the tool's build.
    pub architecture: String,
    /// Model name, or implementer and part numbers.
    pub model: Reading<String>,
    /// Online logical cores.
    pub logical_cores: Reading<u64>,
    /// Online physical cores.
    pub physical_cores: Reading<u64>,
    /// Sockets with online cores.
    pub sockets: Reading<u64>,
    /// Whether simultaneous multithreading (SMT) is active.
    pub smt: Reading<bool>,
    /// Active frequency governors, sorted, comma-separated.
    pub governor: Reading<String>,
    /// Maximum frequency of the first core, kHz.
    pub frequency_khz_max: Reading<u64>,
    /// Known CPU vulnerabilities and their mitigations.
    pub mitigations: Reading<BTreeMap<String, String>>,
}

/// Main memory and its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// Memory usable by the kernel, bytes.
    pub total_bytes: Reading<u64>,
    /// Swap space, bytes.
    pub swap_bytes: Reading<u64>,
    /// NUMA nodes.
    pub numa_nodes: Reading<u64>,
    /// Huge page size, bytes.
    pub huge_page_bytes: Reading<u64>,
    /// Reserved huge pages.
    pub huge_pages: Reading<u64>,
    /// Mode of transparent huge pages.
    pub transparent_huge_pages: Reading<String>,
    /// Limit of locked memory of this process: bytes, or `unlimited`.
    pub memlock_limit: Reading<String>,
}

/// The operating system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Release, as in `6.12.1`.
    pub release: Reading<String>,
    /// Build number and date.
    pub version: Reading<String>,
    /// Boot command line.
    pub command_line: Reading<String>,
    /// Distribution.
    pub distribution: Reading<String>,
    /// 0: io_uring is allowed for all; 1: for some; 2: for none. Kernels before 6.6 have no such
    /// switch.
    pub io_uring_disabled: Reading<u64>,
    /// Clock source, as in `tsc`.
    pub clock_source: Reading<String>,
}

impl Machine {
    pub(super) fn collect(root: &Path) -> Self {
        let dmi = |name| words(root, Path::new("sys/class/dmi/id").join(name));
        // Machines without DMI (most ARM boards) are described in the device tree.
        let product = match dmi("product_name") {
            Reading::NotReadable(why) => {
                Reading::or_because(words(root, "proc/device-tree/model").value().cloned(), why)
            }
            product => product,
        };
        Self {
            vendor: dmi("sys_vendor"),
            product,
            board: dmi("board_name"),
            firmware: dmi("bios_version"),
            virtualised: virtualised(root).into(),
            container: container(root),
        }
    }
}

impl Cpu {
    pub(crate) fn collect(root: &Path) -> Self {
        let cores = online_cores(root);
        let none_shown = format!("{CORES} shows no core");
        let count = |count: usize| Reading::or_because((count > 0).then_some(count as u64), &none_shown);
        let topology =
            |core: &String, name| text::read_number(root, format!("{CORES}/{core}/topology/{name}")).ok();
        let package = |core| topology(core, "physical_package_id");
        let physical: BTreeSet<_> =
            cores.iter().filter_map(|c| Some((package(c)?, topology(c, "core_id")?))).collect();
        let sockets: BTreeSet<_> = cores.iter().filter_map(package).collect();
        let governor =
            |core: &String| text::read_trimmed(root, format!("{CORES}/{core}/cpufreq/scaling_governor")).ok();
        let governors: BTreeSet<_> = cores.iter().filter_map(governor).collect();
        let governors = governors.into_iter().collect::<Vec<_>>().join(", ");
        Self {
            architecture: std::env::consts::ARCH.to_owned(),
            model: cpu_model(root).into(),
            logical_cores: count(cores.len()),
            physical_cores: count(physical.len()),
            sockets: count(sockets.len()),
            smt: flag(root, format!("{CORES}/smt/active")),
            governor: Reading::or_because(
                (!governors.is_empty()).then_some(governors),
                "no core has a frequency governor",
            ),
            frequency_khz_max: number(root, format!("{CORES}/cpu0/cpufreq/cpuinfo_max_freq")),
            mitigations: mitigations(root).into(),
        }
    }
}

impl MemorySettings {
    pub(super) fn collect(root: &Path) -> Self {
        let memory = memory(root);
        let nodes = text::names(root, "sys/devices/system/node");
        let nodes = nodes.map(|names| names.iter().filter(|name| is_numbered(name, "node")).count() as u64);
        Self {
            total_bytes: memory.clone().map(|memory| memory.total_bytes),
            swap_bytes: memory.clone().map(|memory| memory.swap_bytes),
            numa_nodes: nodes.into(),
            huge_page_bytes: memory.clone().map(|memory| memory.huge_page_bytes),
            huge_pages: memory.map(|memory| memory.huge_pages),
            transparent_huge_pages: chosen(root, "sys/kernel/mm/transparent_hugepage/enabled"),
            memlock_limit: memlock_limit(root).into(),
        }
    }
}

impl Kernel {
    pub(super) fn collect(root: &Path) -> Self {
        Self {
            release: words(root, "proc/sys/kernel/osrelease"),
            version: words(root, "proc/sys/kernel/version"),
            command_line: words(root, "proc/cmdline"),
            distribution: distribution(root).into(),
            io_uring_disabled: number(root, "proc/sys/kernel/io_uring_disabled"),
            clock_source: words(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        }
    }
}

/// Directories of online cores: offline cores have no topology.
fn online_cores(root: &Path) -> Vec<String> {
    let mut cores = text::names(root, CORES).unwrap_or_default();
    cores.retain(|name| is_numbered(name, "cpu") && root.join(CORES).join(name).join("topology").is_dir());
    cores
}

/// Whether a name consists of the prefix and a number.
fn is_numbered(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix).unwrap_or("");
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Value of the first line `key : value` of /proc/cpuinfo with this key.
fn cpuinfo<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

fn cpu_model(root: &Path) -> Result<String, MeasureError> {
    let file = "proc/cpuinfo";
    let text = text::read(root, file)?;
    // ARM provides numbers instead of a name.
    let numbered = || {
        let (maker, part) = (cpuinfo(&text, "CPU implementer")?, cpuinfo(&text, "CPU part")?);
        Some(format!("implementer {maker} part {part}"))
    };
    let named = cpuinfo(&text, "model name").map(str::to_owned);
    named.or_else(numbered).ok_or_else(|| text::malformed(root, file, "it names no model"))
}

/// x86 has a CPU flag for hypervisors; elsewhere the device tree may show it.
fn virtualised(root: &Path) -> Result<bool, MeasureError> {
    let file = "proc/cpuinfo";
    let text = text::read(root, file)?;
    if root.join("sys/hypervisor/type").exists() || root.join("proc/device-tree/hypervisor").exists() {
        return Ok(true);
    }
    let flags = cpuinfo(&text, "flags");
    let flags = flags.ok_or_else(|| text::malformed(root, file, "the processor does not report it"))?;
    Ok(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// Marks of container engines, most reliable first.
fn container(root: &Path) -> String {
    if let Ok(name) = text::read_trimmed(root, "run/systemd/container") {
        return name;
    }
    for (mark, name) in [("run/.containerenv", "podman"), (".dockerenv", "docker")] {
        if root.join(mark).exists() {
            return name.to_owned();
        }
    }
    let groups = text::read(root, "proc/1/cgroup").unwrap_or_default();
    let marks = [("kubepods", "kubernetes"), ("docker", "docker"), ("lxc", "lxc"), ("libpod", "podman")];
    let found = marks.into_iter().find(|(mark, _)| groups.contains(mark));
    found.map_or("none", |(_, name)| name).to_owned()
}

fn mitigations(root: &Path) -> Result<BTreeMap<String, String>, MeasureError> {
    let directory = format!("{CORES}/vulnerabilities");
    let read =
        |name| Some((String::clone(name), text::read_trimmed(root, format!("{directory}/{name}")).ok()?));
    Ok(text::names(root, &directory)?.iter().filter_map(read).collect())
}

fn memlock_limit(root: &Path) -> Result<String, MeasureError> {
    let file = "proc/self/limits";
    let text = text::read(root, file)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|limits| limits.split_ascii_whitespace().next());
    soft.map(str::to_owned).ok_or_else(|| text::malformed(root, file, "it lists no limit on locked memory"))
}

fn distribution(root: &Path) -> Result<String, MeasureError> {
    let file = "etc/os-release";
    let text = text::read(root, file)?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map(|name| name.trim().trim_matches(['"', '\'']).to_owned());
    name.ok_or_else(|| text::malformed(root, file, "it has no PRETTY_NAME"))
}
