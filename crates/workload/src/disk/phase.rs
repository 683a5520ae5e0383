//! The clock of a phase: time, CPU of the process, CPU of the machine.
use std::path::Path;

use keepup_measure::clock::Clock;
use keepup_measure::cpu::{CoreTimes, ProcessCpu};
use keepup_measure::histogram::Latency;
use keepup_results::{DiskLatency, DiskPhase};

/// What a slow disk writes, for estimates of time, in bytes per second.
pub(super) const RATE_GUESS: f64 = 200e6;

/// A phase that has begun.
pub(super) struct PhaseClock {
    cores: Option<Vec<CoreTimes>>,
    cpu: ProcessCpu,
    begin_ns: u64,
}

fn cores() -> Option<Vec<CoreTimes>> {
    CoreTimes::read_all(Path::new("/")).ok()
}

impl PhaseClock {
    pub(super) fn begin(clock: &dyn Clock) -> Self {
        Self { cores: cores(), cpu: ProcessCpu::now(), begin_ns: clock.now_ns() }
    }

    /// The phase counts from `begin_ns`, a moment ago: this thread was late.
    pub(super) fn since(self, begin_ns: u64) -> Self {
        Self { begin_ns, ..self }
    }

    /// The phase ends now.
    pub(super) fn end(self, clock: &dyn Clock, name: String, files: u64, bytes: u64) -> DiskPhase {
        let elapsed_ns = clock.now_ns().saturating_sub(self.begin_ns);
        let cpu_ns = ProcessCpu::now().since_ns(self.cpu);
        let (mut busy_ns, mut steal_ns) = (None, None);
        if let (Some(before), Some(after)) = (self.cores, cores()) {
            for (before, after) in before.iter().zip(&after).filter(|(b, a)| b.core == a.core) {
                let passed = after.since(before);
                let busy = passed.user_ns + passed.system_ns + passed.irq_ns + passed.softirq_ns;
                busy_ns = Some(busy_ns.unwrap_or(0) + busy);
                steal_ns = Some(steal_ns.unwrap_or(0) + passed.steal_ns);
            }
        }
        let seconds = |ns: u64| ns as f64 / 1e9;
        DiskPhase {
            name,
            // On the clock; whoever repeats the test knows when the run began.
            begin_seconds: seconds(self.begin_ns),
            files,
            bytes,
            operations: None,
            seconds: seconds(elapsed_ns),
            cpu_seconds: seconds(cpu_ns),
            machine_cpu_seconds: busy_ns.map(seconds),
            steal_seconds: steal_ns.map(seconds),
            latency: None,
            parts: Vec::new(),
            load_rates: Vec::new(),
        }
    }
}

/// What a result says of latencies.
pub(super) fn told(latency: &Latency) -> DiskLatency {
    let summary = latency.summary();
    DiskLatency {
        mean_ns: summary.mean_ns,
        p50_ns: summary.p50_ns,
        p99_ns: summary.p99_ns,
        p99_9_ns: summary.p99_9_ns,
        max_ns: summary.max_ns,
    }
}
