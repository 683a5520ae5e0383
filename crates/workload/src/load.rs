//! Background loads: each keeps a part of the machine busy at a stated rate, in a process of its own, so that
//! neither its CPU nor its memory is billed to what is measured.
//!
//! `net`, `disk`, `memory` and `cpu` do the work, `child` is the process that does it, and `parent` starts
//! such processes and keeps their accounts. Invariants: a load is open loop and counts only what was done;
//! its files are removed whatever happens to it; it ends when its parent does.
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

use keepup_measure::clock::Clock;
use keepup_peer::Endpoint;
use keepup_plan::{DiskWay, LoadSpec};
use keepup_results::LoadKind;

pub use child::work as run_child;
pub use parent::Loads;

use crate::net::{Credentials, NetError, NetServer as Server, PORT, TOKEN_VARIABLE};
use crate::preflight::{check, device};
use crate::{Context, Footprint, WorkloadError};

/// The longest that a load sleeps without looking whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What keeps a part of the machine busy.
trait Load: Send {
    /// Makes everything ready, which does not count; `name` is free for a directory of its own. Tells what
    /// the reader of its figures should know.
    fn prepare(&mut self, name: &str, context: &mut Context) -> Result<Vec<String>, WorkloadError>;

    /// Works until it is to stop.
    fn run(&mut self, shift: &Shift<'_>) -> Result<(), WorkloadError>;

    /// Removes what it made; called whatever happened before.
    fn clean_up(&mut self) {}
}

/// What a working load is handed.
struct Shift<'a> {
    clock: &'a dyn Clock,
    stop: &'a AtomicBool,
    /// When the first piece is due.
    begin_ns: u64,
    /// Bytes moved, or ns on processors, so far.
    done: &'a AtomicU64,
}

impl Shift<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn add(&self, amount: u64) {
        self.done.fetch_add(amount, Ordering::Relaxed);
    }

    /// Sleeps until `until_ns`; false when it is to stop.
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

/// The load that a text asks for; `credentials` are for a server of traffic.
fn build(spec: &LoadSpec, credentials: Option<Credentials>) -> Result<Box<dyn Load>, WorkloadError> {
    Ok(match spec {
        LoadSpec::Net { rate, from: None } => Box::new(net::Loopback::new(rate.bytes_per_second())),
        LoadSpec::Net { rate, from: Some(from) } => {
            let none = || WorkloadError::Load {
                spec: spec.to_string(),
                why: format!("the server wants a token\nhint: {TOKEN_VARIABLE}=TOKEN, with what it printed"),
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

/// Loads that are to run, and the program that runs them.
#[derive(Clone, Debug, Default)]
pub struct LoadPlan {
    /// This program: it is started once for each load.
    pub program: PathBuf,
    /// The loads.
    pub specs: Vec<LoadSpec>,
}

impl LoadPlan {
    /// What the loads will write and hold while something runs for `time`.
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

    /// Looks at the directories of disk loads as at any volume, with room for what else will be held on the
    /// same file systems; tells what the user should know.
    ///
    /// # Errors
    /// A directory that is missing, unsafe, cannot be written to, or has no room.
    pub fn check(&self, beside: &BTreeMap<PathBuf, u64>) -> Result<Vec<String>, WorkloadError> {
        let own = self.footprint(Duration::ZERO).space_bytes;
        let mut warnings = Vec::new();
        for directory in own.keys() {
            // Whatever is wrong with the directory itself is told before its file system is asked for.
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

    /// What they will do while something runs for `time`, or without end, for people; nothing without loads.
    pub fn told(&self, time: Option<Duration>) -> Option<String> {
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
