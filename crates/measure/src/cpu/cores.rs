//! Usage of each core from /proc/stat: own work, interrupts, and stolen time.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

use super::ticks_to_ns;
use crate::error::MeasureError;
use crate::text;

/// Time of one core in each state since boot, ns, in steps of a tick (10 ms).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreTimes {
    /// Core number.
    pub core: u32,
    /// Time of the reading, ns since boot.
    pub read_ns: u64,
    /// User code, niced included.
    pub user_ns: u64,
    /// Kernel code other than interrupts.
    pub system_ns: u64,
    /// Interrupts.
    pub irq_ns: u64,
    /// Softirqs, which include network receive work.
    pub softirq_ns: u64,
    /// Stolen by the hypervisor for other guests.
    pub steal_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Idle while a disk request of this core was outstanding; also idle time.
    pub iowait_ns: u64,
}

/// Usage of one core between two readings, percent of the time between them.
///
/// Kernels with tick-based accounting miss most work shorter than a tick: the shares of single
/// states are then too low, by half or more at a few percent. Idle time is measured exactly, so
/// busy time is computed from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreUsage {
    /// Core number.
    pub core: u32,
    /// Neither idle nor iowait: any work, including time stolen by the hypervisor.
    pub busy_percent: f64,
    /// User code.
    pub user_percent: f64,
    /// Kernel code other than interrupts.
    pub system_percent: f64,
    /// Interrupts.
    pub irq_percent: f64,
    /// Softirqs.
    pub softirq_percent: f64,
    /// Stolen by the hypervisor.
    pub steal_percent: f64,
}

impl CoreTimes {
    /// All cores that are online, by number. `root` is `/` outside tests. Fails when /proc/stat shows none.
    pub fn read_all(root: &Path) -> Result<Vec<Self>, MeasureError> {
        let mut cores = parse_core_times(&text::read(root, "proc/stat")?, clock_ticks_per_second());
        let read_ns = parse_uptime(&text::read(root, "proc/uptime")?)
            .ok_or_else(|| text::malformed(root, "proc/uptime", "it begins with no time"))?;
        cores.iter_mut().for_each(|core| core.read_ns = read_ns);
        if cores.is_empty() { Err(text::malformed(root, "proc/stat", "it lists no core")) } else { Ok(cores) }
    }

    /// Time in each state since `earlier`. Idle and iowait may decrease slightly in the kernel;
    /// that counts as zero.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            core: self.core,
            read_ns: self.read_ns.saturating_sub(earlier.read_ns),
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            irq_ns: self.irq_ns.saturating_sub(earlier.irq_ns),
            softirq_ns: self.softirq_ns.saturating_sub(earlier.softirq_ns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
            idle_ns: self.idle_ns.saturating_sub(earlier.idle_ns),
            iowait_ns: self.iowait_ns.saturating_sub(earlier.iowait_ns),
        }
    }

    /// Busy time between two readings, as returned by [`since`](Self::since): neither idle nor
    /// iowait; see [`CoreUsage`].
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.read_ns.saturating_sub(self.idle_ns).saturating_sub(self.iowait_ns)
    }

    fn usage(&self) -> Option<CoreUsage> {
        let elapsed_ns = self.read_ns as f64;
        let percent = |ns: f64| (100.0 * ns / elapsed_ns).clamp(0.0, 100.0);
        (self.read_ns > 0).then(|| CoreUsage {
            core: self.core,
            busy_percent: percent(self.busy_ns() as f64),
            user_percent: percent(self.user_ns as f64),
            system_percent: percent(self.system_ns as f64),
            irq_percent: percent(self.irq_ns as f64),
            softirq_percent: percent(self.softirq_ns as f64),
            steal_percent: percent(self.steal_ns as f64),
        })
    }
}

/// Usage of each core between two readings. Cores missing in one of them, or without progress of
/// time (readings less than 10 ms apart), are left out.
pub fn core_usage(before: &[CoreTimes], after: &[CoreTimes]) -> Vec<CoreUsage> {
    let earlier: BTreeMap<u32, &CoreTimes> = before.iter().map(|core| (core.core, core)).collect();
    after.iter().filter_map(|core| core.since(earlier.get(&core.core)?).usage()).collect()
}

/// Cores in the text of /proc/stat (proc_stat(5)); other lines are skipped. Guest time is part of
/// user time and not added again. The text has no time of reading, so it is set to 0.
pub(crate) fn parse_core_times(text: &str, ticks_per_s: u64) -> Vec<CoreTimes> {
    text.lines().filter_map(|line| parse_core(line, ticks_per_s)).collect()
}

/// Time since boot, ns, from the text of /proc/uptime (proc_uptime(5)), with a resolution of 10 ms.
fn parse_uptime(text: &str) -> Option<u64> {
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1e9) as u64)
}

/// Interrupts of the whole machine since boot, of devices and timers, from the text of /proc/stat.
pub(crate) fn parse_interrupts(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("intr "))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The same, now. `root` is `/` outside tests.
pub fn interrupts(root: &Path) -> Option<u64> {
    parse_interrupts(&text::read(root, "proc/stat").ok()?)
}

fn parse_core(line: &str, ticks_per_s: u64) -> Option<CoreTimes> {
    let mut fields = line.split_ascii_whitespace();
    let core = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    let ns = |ticks| ticks_to_ns(ticks, ticks_per_s);
    Some(CoreTimes {
        core,
        read_ns: 0,
        user_ns: ns(user.saturating_add(nice)),
        system_ns: ns(system),
        irq_ns: ns(irq),
        softirq_ns: ns(softirq),
        steal_ns: ns(steal),
        idle_ns: ns(idle),
        iowait_ns: ns(iowait),
    })
}

#[cfg(test)]
#[path = "cores_tests.rs"]
mod tests;
