//! Background loads: each generates a given rate of work in a separate process, so that its CPU
//! time and memory do not count for the measurement.
//!
//! `net`, `disk`, `memory` and `cpu` generate the load, `child` is the worker process, and `parent`
//! starts and monitors workers. Invariants: a load is open loop and counts only completed work; its
//! files are always removed; it ends when its parent does.
mod child;
mod cpu;
mod disk;
mod memory;
mod net;
mod pace;
mod parent;
mod remote;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_plan::{DiskWay, LoadSpec};
use keepup_results::LoadKind;

pub use child::work as run_child;
pub use parent::Loads;

use crate::net::{Credentials, NetError, NetServer as Server, PORT, TOKEN_VARIABLE};
use crate::preflight::{check, device};
use crate::{Context, Footprint, WorkloadError};

/// Longest sleep between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(50);

/// Generator of one kind of load.
trait LoadGenerator: Send {
    /// Prepares the load, outside the measured time; `name` may be used for a directory. Returns
    /// notes for the result.
    fn prepare(&mut self, name: &str, context: &mut Context) -> Result<Vec<String>, WorkloadError>;

    /// Generates load until stopped.
    fn run(&mut self, run: &LoadRun<'_>) -> Result<(), WorkloadError>;

    /// Removes temporary files; always called.
    fn clean_up(&mut self) {}
}

/// Inputs of a running generator.
struct LoadRun<'a> {
    clock: &'a dyn Clock,
    stop: &'a AtomicBool,
    /// Due time of the first piece of work.
    begin_ns: u64,
    /// Work done so far: bytes, or CPU time in ns.
    done: &'a AtomicU64,
}

impl LoadRun<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn add(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }

    /// Sleeps until `until_ns`; false when stopped.
    fn wait(&self, until_ns: u64) -> bool {
        loop {
            let now_ns = self.clock.now_ns();
            if self.is_over() || now_ns >= until_ns {
                return !self.is_over();
            }
            self.clock.sleep_until_ns(until_ns.min(now_ns + LOOK.as_nanos() as u64));
        }
    }
}

/// Generator for a specification; `credentials` are for `keepup net serve`.
fn build(spec: &LoadSpec, credentials: Option<Credentials>) -> Result<Box<dyn LoadGenerator>, WorkloadError> {
    Ok(match spec {
        LoadSpec::Net { rate, from: None } => Box::new(net::Loopback::new(rate.bytes_per_second())),
        LoadSpec::Net { rate, from: Some(from) } => {
            let none = || WorkloadError::Load {
                spec: spec.to_string(),
                why: Cause::new("the server requires a token")
                    .with_hint(format!("set {TOKEN_VARIABLE} to the token printed by the server")),
            };
            let endpoint = Endpoint::with_default_port(from, PORT).map_err(NetError::from)?;
            let server = Server { endpoint, credentials: credentials.ok_or_else(none)?, name: None };
            Box::new(remote::Remote::new(rate.bytes_per_second(), server)?)
        }
        LoadSpec::Disk { rate, directory, way, size } => {
            Box::new(disk::DiskLoad::new(rate.bytes_per_second(), directory.clone(), *way, size.0))
        }
        LoadSpec::Memory { rate } => Box::new(memory::MemoryLoad::new(rate.bytes_per_second())),
        LoadSpec::Cpu { cores } => Box::new(cpu::CpuLoad::new(*cores)),
    })
}

fn kind(spec: &LoadSpec) -> LoadKind {
    match spec {
        LoadSpec::Net { .. } => LoadKind::Net,
        LoadSpec::Disk { .. } => LoadKind::Disk,
        LoadSpec::Memory { .. } => LoadKind::Memory,
        LoadSpec::Cpu { .. } => LoadKind::Cpu,
    }
}

/// Loads to run and the program that runs them.
#[derive(Clone, Debug, Default)]
pub struct LoadPlan {
    /// Path of this program, started once per load.
    pub program: PathBuf,
    /// Specifications of the loads.
    pub specs: Vec<LoadSpec>,
}

impl LoadPlan {
    /// Bytes written and space used by the loads during `time`.
    pub fn footprint(&self, time: Duration) -> Footprint {
        let mut footprint = Footprint { time, ..Footprint::default() };
        for spec in &self.specs {
            let LoadSpec::Disk { rate, directory, way, size } = spec else { continue };
            let moved = match way {
                DiskWay::Read => 0.0,
                DiskWay::Write => rate.bytes_per_second() * time.as_secs_f64(),
            };
            *footprint.space_bytes.entry(directory.clone()).or_default() += size.0;
            *footprint.bytes_written.entry(directory.clone()).or_default() +=
                size.0.saturating_add(moved as u64);
        }
        footprint
    }

    /// Checks the directories of disk loads like any volume, including the space `beside` needed by
    /// others on the same file systems; returns warnings.
    ///
    /// # Errors
    /// A directory that is missing, unsafe, not writable, or without enough free space.
    pub fn check(&self, beside: &BTreeMap<PathBuf, u64>) -> Result<Vec<String>, WorkloadError> {
        let own = self.footprint(Duration::ZERO).space_bytes;
        let mut warnings = Vec::new();
        for directory in own.keys() {
            // Errors of the directory itself are reported before those of its file system.
            check(std::slice::from_ref(directory), 0)?;
            let here = device(directory);
            let same = |(path, _): &(&PathBuf, &u64)| here.is_some() && device(path) == here;
            let needed = own.iter().chain(beside).filter(same).map(|(_, bytes)| *bytes);
            let needed = needed.fold(0, u64::saturating_add);
            for checked in check(std::slice::from_ref(directory), needed)? {
                warnings.extend(checked.warnings);
            }
        }
        Ok(warnings)
    }

    /// One-line summary for a run of `time`, or an unlimited one; none without loads.
    pub fn summary(&self, time: Option<Duration>) -> Option<String> {
        let names: Vec<String> = self.specs.iter().map(ToString::to_string).collect();
        let footprint = self.footprint(time.unwrap_or_default());
        let gb = |of: &BTreeMap<PathBuf, u64>| {
            of.values().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)) as f64 / 1e9
        };
        let writes = |spec: &LoadSpec| matches!(spec, LoadSpec::Disk { way: DiskWay::Write, .. });
        let (held, written) = (gb(&footprint.space_bytes), gb(&footprint.bytes_written));
        let cost = match time {
            _ if footprint.space_bytes.is_empty() => String::new(),
            None if self.specs.iter().any(writes) => {
                format!("; they hold {held:.1} GB and write until the end, removed afterwards")
            }
            _ => format!("; they hold {held:.1} GB and write at most {written:.1} GB, removed afterwards"),
        };
        (!names.is_empty()).then(|| format!("beside it: {}{cost}", names.join("; ")))
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
