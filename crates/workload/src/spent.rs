//! Elapsed time and CPU time between two moments, CPU of the machine.
use std::path::Path;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::{CoreTimes, ProcessCpu};

/// Start of an interval.
pub struct SpentClock {
    cores: Option<Vec<CoreTimes>>,
    interrupts: Option<u64>,
    storage_interrupts: Option<u64>,
    cpu: ProcessCpu,
    begin_ns: u64,
}

/// Time and CPU time of an interval, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Elapsed time.
    pub seconds: f64,
    /// CPU time of this process including its kernel workers.
    pub cpu_seconds: f64,
    /// CPU time of the whole machine: all non-idle time of all cores, in steps of 10 ms per core.
    pub machine_cpu_seconds: Option<f64>,
    /// Part of it in softirqs.
    pub softirq_seconds: Option<f64>,
    /// Time stolen by the hypervisor.
    pub steal_seconds: Option<f64>,
    /// Interrupts of the whole machine.
    pub interrupts: Option<u64>,
    /// Part of them from the adapters of disks, if known.
    pub storage_interrupts: Option<u64>,
    /// Number of cores counted.
    pub cores: Option<u32>,
}

fn cores() -> Option<Vec<CoreTimes>> {
    CoreTimes::read_all(Path::new("/")).ok()
}

fn interrupts() -> Option<u64> {
    keepup_measure::cpu::interrupts(Path::new("/"))
}

fn storage_interrupts() -> Option<u64> {
    keepup_measure::storage_interrupts(Path::new("/"))
}

impl SpentClock {
    /// Starts an interval now.
    pub fn begin(clock: &dyn Clock) -> Self {
        let (interrupts, storage_interrupts) = (interrupts(), storage_interrupts());
        let (cores, cpu) = (cores(), ProcessCpu::now());
        Self { cores, interrupts, storage_interrupts, cpu, begin_ns: clock.now_ns() }
    }

    /// Backdates the start to `begin_ns` because this thread woke late.
    pub(crate) fn since(self, begin_ns: u64) -> Self {
        Self { begin_ns, ..self }
    }

    /// Start time, ns.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Usage since the start.
    pub fn end(&self, clock: &dyn Clock) -> Spent {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let elapsed_ns = clock.now_ns().saturating_sub(self.begin_ns);
        let cpu_ns = ProcessCpu::now().since_ns(self.cpu);
        let mut spent =
            Spent { seconds: seconds(elapsed_ns), cpu_seconds: seconds(cpu_ns), ..Spent::default() };
        let passed = |before: Option<u64>, after: Option<u64>| {
            before.zip(after).map(|(before, after)| after.saturating_sub(before))
        };
        spent.interrupts = passed(self.interrupts, interrupts());
        spent.storage_interrupts = passed(self.storage_interrupts, storage_interrupts());
        let (Some(before), Some(after)) = (&self.cores, cores()) else { return spent };
        for (before, after) in before.iter().zip(&after).filter(|(b, a)| b.core == a.core) {
            let passed = after.since(before);
            let add = |sum: &mut Option<f64>, ns| *sum = Some(sum.unwrap_or(0.0) + seconds(ns));
            add(&mut spent.machine_cpu_seconds, passed.busy_ns());
            add(&mut spent.softirq_seconds, passed.softirq_ns);
            add(&mut spent.steal_seconds, passed.steal_ns);
            spent.cores = Some(spent.cores.unwrap_or(0) + 1);
        }
        spent
    }
}
