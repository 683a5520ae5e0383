//! Processor time of this process's threads, by name, from /proc/self/task.
//!
//! Threads that ended before a reading are missing here; `ProcessCpu` has them.

use std::collections::BTreeMap;
use std::path::Path;

use rustix::param::clock_ticks_per_second;
use serde::{Deserialize, Serialize};

use super::ticks_to_ns;
use crate::error::MeasureError;
use crate::text;

/// What one thread has used since it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadStat {
    /// The kernel's thread number.
    pub id: u32,
    /// Its name, at most 15 bytes; io_uring's workers are called `iou-wrk-…`.
    pub name: String,
    /// Time on a core, in ns; in steps of a tick (10 ms) where the kernel has no schedstat.
    pub run_ns: u64,
    /// The part of it inside the kernel, in ns, in steps of a tick (10 ms).
    pub system_ns: u64,
    /// Time it was ready but waited for a core, in ns; unknown where the kernel has no schedstat.
    pub run_delay_ns: Option<u64>,
}

/// What all threads of one name used between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadUsage {
    /// The name they share.
    pub name: String,
    /// How many of them the later reading saw.
    pub threads: u32,
    /// Time on a core, in ns.
    pub run_ns: u64,
    /// The part of it inside the kernel, in ns, in steps of a tick (10 ms).
    pub system_ns: u64,
    /// Time ready but waiting for a core, in ns; unknown if it is for one of them.
    pub run_delay_ns: Option<u64>,
}

impl ThreadStat {
    /// All threads of this process now, by number. `root` is `/` in earnest.
    /// Fails when /proc cannot be read; a thread that ends meanwhile is left out.
    pub fn read_all(root: &Path) -> Result<Vec<Self>, MeasureError> {
        let tasks = "proc/self/task";
        let ticks_per_s = clock_ticks_per_second();
        let mut ids: Vec<u32> =
            text::names(root, tasks)?.iter().filter_map(|name| name.parse().ok()).collect();
        ids.sort_unstable();
        let read = |id| {
            let stat = text::read(root, format!("{tasks}/{id}/stat")).ok()?;
            let schedstat = text::read(root, format!("{tasks}/{id}/schedstat")).ok();
            parse_thread(id, &stat, schedstat.as_deref(), ticks_per_s)
        };
        Ok(ids.into_iter().filter_map(read).collect())
    }

    /// What was used since `earlier`; everything, if the counters say that the number was given to a new
    /// thread.
    fn since(&self, earlier: Option<&Self>) -> (u64, u64, Option<u64>) {
        let Some(earlier) = earlier.filter(|earlier| earlier.run_ns <= self.run_ns) else {
            return (self.run_ns, self.system_ns, self.run_delay_ns);
        };
        let delay_ns = match (self.run_delay_ns, earlier.run_delay_ns) {
            (Some(now), Some(before)) => Some(now.saturating_sub(before)),
            _ => None,
        };
        (self.run_ns - earlier.run_ns, self.system_ns.saturating_sub(earlier.system_ns), delay_ns)
    }
}

/// What the threads used between two readings, summed by name and sorted by it.
/// A thread that only the later reading saw counts from its beginning.
pub fn thread_usage(before: &[ThreadStat], after: &[ThreadStat]) -> Vec<ThreadUsage> {
    let earlier: BTreeMap<u32, &ThreadStat> = before.iter().map(|thread| (thread.id, thread)).collect();
    let mut usage: BTreeMap<&str, ThreadUsage> = BTreeMap::new();
    for thread in after {
        let (run_ns, system_ns, delay_ns) = thread.since(earlier.get(&thread.id).copied());
        let sum = usage.entry(&thread.name).or_insert_with(|| ThreadUsage {
            name: thread.name.clone(),
            threads: 0,
            run_ns: 0,
            system_ns: 0,
            run_delay_ns: Some(0),
        });
        sum.threads += 1;
        sum.run_ns = sum.run_ns.saturating_add(run_ns);
        sum.system_ns = sum.system_ns.saturating_add(system_ns);
        sum.run_delay_ns = sum.run_delay_ns.zip(delay_ns).map(|(sum, own)| sum.saturating_add(own));
    }
    usage.into_values().collect()
}

/// One thread from the text of its `stat` and `schedstat` (proc_pid_stat(5); Documentation/scheduler).
fn parse_thread(id: u32, stat: &str, schedstat: Option<&str>, ticks_per_s: u64) -> Option<ThreadStat> {
    // The name stands in parentheses and may hold anything, parentheses and blanks too.
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    // The state is field 3; user and system time are fields 14 and 15.
    let user_ticks: u64 = fields.nth(11)?.parse().ok()?;
    let system_ticks: u64 = fields.next()?.parse().ok()?;
    let mut schedule = schedstat.unwrap_or("").split_ascii_whitespace().map_while(|n| n.parse::<u64>().ok());
    let (exact_run_ns, run_delay_ns) = (schedule.next(), schedule.next());
    let ticked_ns = ticks_to_ns(user_ticks.saturating_add(system_ticks), ticks_per_s);
    Some(ThreadStat {
        id,
        name: name.to_owned(),
        run_ns: exact_run_ns.unwrap_or(ticked_ns),
        system_ns: ticks_to_ns(system_ticks, ticks_per_s),
        run_delay_ns,
    })
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
