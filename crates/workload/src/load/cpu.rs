//! CPU load: threads that are busy for a share of every period, measured by their CPU clocks.
use std::hint::black_box;

use keepup_measure::cpu::thread_cpu_ns;

use super::pace::DEBT;
use super::{LoadGenerator, LoadRun};
use crate::{Context, WorkloadError};

/// Length of a period.
const PERIOD_NS: u64 = 10_000_000;
/// Arithmetic steps between clock checks, a few microseconds.
const STEPS: u32 = 4096;
/// Maximum catch-up speed, as a multiple of the share.
const CATCH_UP: u64 = 2;

/// State of a CPU load.
pub(super) struct CpuLoad {
    cores: f64,
}

impl CpuLoad {
    /// A load of `cores` busy cores.
    pub(super) fn new(cores: f64) -> Self {
        Self { cores }
    }
}

impl LoadGenerator for CpuLoad {
    fn prepare(&mut self, _name: &str, _context: &mut Context) -> Result<Vec<String>, WorkloadError> {
        Ok(Vec::new())
    }

    fn run(&mut self, run: &LoadRun<'_>) -> Result<(), WorkloadError> {
        let threads = self.cores.ceil() as u32;
        let share_ns = (self.cores / f64::from(threads) * PERIOD_NS as f64) as u64;
        std::thread::scope(|scope| {
            let start = |n: u32| {
                std::thread::Builder::new()
                    .name(format!("ku-load-{n}"))
                    .spawn_scoped(scope, move || burn(share_ns, run))
                    .map_err(|source| WorkloadError::System { action: "start a load".into(), source })
            };
            let outcome: Result<Vec<_>, _> = (1..threads).map(start).collect();
            if outcome.is_ok() {
                burn(share_ns, run);
            } else {
                run.stop.store(true, std::sync::atomic::Ordering::Release);
            }
            outcome.map(drop)
        })
    }
}

/// Is busy for `share_ns` of each period until stopped.
fn burn(share_ns: u64, run: &LoadRun<'_>) {
    let start_ns = thread_cpu_ns();
    let (mut counted_ns, mut due_ns, mut at_ns) = (0, 0, run.begin_ns);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    while run.wait(at_ns) {
        // Periods that were slept through add their share.
        let periods = (run.clock.now_ns() - at_ns) / PERIOD_NS + 1;
        at_ns += periods * PERIOD_NS;
        due_ns += periods * share_ns;
        let debt_ns = DEBT.as_nanos() as u64 / PERIOD_NS * share_ns;
        due_ns = due_ns.min(counted_ns + share_ns + debt_ns);
        let until_ns = due_ns.min(counted_ns + CATCH_UP * share_ns);
        while counted_ns < until_ns && !run.is_over() {
            for _ in 0..STEPS {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(17) ^ 1;
            }
            let used_ns = thread_cpu_ns() - start_ns;
            run.add(used_ns - counted_ns);
            counted_ns = used_ns;
        }
    }
    black_box(state);
}
