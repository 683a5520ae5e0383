//! What passed between two moments: time, CPU of this process, CPU of the machine; and latencies as results
//! tell them.
use std::path::Path;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::{CoreTimes, ProcessCpu};
use keepup_measure::histogram::Latency;
use keepup_results::LatencyFigures;

/// The first of two moments.
pub(crate) struct SpentClock {
    cores: Option<Vec<CoreTimes>>,
    interrupts: Option<u64>,
    cpu: ProcessCpu,
    begin_ns: u64,
}

/// What passed since; seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Time.
    pub(crate) seconds: f64,
    /// CPU of this process, its kernel workers included.
    pub(crate) cpu_seconds: f64,
    /// CPU of the whole machine: all that no core idled, in steps of 10 ms of each.
    pub(crate) machine_cpu_seconds: Option<f64>,
    /// Of that, deferred interrupts.
    pub(crate) softirq_seconds: Option<f64>,
    /// What the hypervisor gave to others.
    pub(crate) steal_seconds: Option<f64>,
    /// Interrupts of the whole machine.
    pub(crate) interrupts: Option<u64>,
    /// Cores that were counted.
    pub(crate) cores: Option<u32>,
}

fn cores() -> Option<Vec<CoreTimes>> {
    CoreTimes::read_all(Path::new("/")).ok()
}

fn interrupts() -> Option<u64> {
    keepup_measure::cpu::interrupts(Path::new("/"))
}

impl SpentClock {
    pub(crate) fn begin(clock: &dyn Clock) -> Self {
        Self { cores: cores(), interrupts: interrupts(), cpu: ProcessCpu::now(), begin_ns: clock.now_ns() }
    }

    /// It counts from `begin_ns`, a moment ago: this thread was late.
    pub(crate) fn since(self, begin_ns: u64) -> Self {
        Self { begin_ns, ..self }
    }

    /// When it began, ns.
    pub(crate) fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// What passed until now.
    pub(crate) fn end(&self, clock: &dyn Clock) -> Spent {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let elapsed_ns = clock.now_ns().saturating_sub(self.begin_ns);
        let cpu_ns = ProcessCpu::now().since_ns(self.cpu);
        let mut spent =
            Spent { seconds: seconds(elapsed_ns), cpu_seconds: seconds(cpu_ns), ..Spent::default() };
        spent.interrupts =
            self.interrupts.zip(interrupts()).map(|(before, after)| after.saturating_sub(before));
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

/// What a result says of latencies.
pub(crate) fn told(latency: &Latency) -> LatencyFigures {
    let summary = latency.summary();
    LatencyFigures {
        mean_ns: summary.mean_ns,
        p50_ns: summary.p50_ns,
        p99_ns: summary.p99_ns,
        p99_9_ns: summary.p99_9_ns,
        max_ns: summary.max_ns,
    }
}
