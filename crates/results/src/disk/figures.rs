//! Figures of a disk test.
use crate::disk::{DiskPart, DiskPhase, DiskSummary};
use crate::figure::{Collected, Figure, Figures, Quantity};

/// Minimum time for machine CPU figures, which the kernel counts in ticks per core.
const BUSY_SECONDS_MIN: f64 = 0.5;

impl Figures for DiskSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        for run in &self.runs {
            for phase in &run.phases {
                add_phase(&mut figures, &run.place(), phase);
            }
            if let Some(crate::disk::DiskFinding::Cache(cache)) = &run.finding {
                figures.measured_for(None);
                let size = cache.evicted_bytes.map(|_| cache.cached_bytes as f64);
                figures.add(&run.place(), "page cache", Quantity::Bytes, size);
            }
        }
        figures.done()
    }
}

fn add_phase(figures: &mut Collected, place: &str, phase: &DiskPhase) {
    let gb = phase.bytes as f64 / 1e9;
    figures.measured_for(Some(phase.seconds));
    figures.add(place, &phase.name, Quantity::BytesPerSecond, phase.bytes_per_second());
    let operations = phase.operations.filter(|_| phase.seconds > 0.0).map(|n| n as f64 / phase.seconds);
    figures.add(place, &phase.name, Quantity::OperationsPerSecond, operations);
    if phase.bytes == 0 && phase.operations.is_none() && phase.seconds > 0.0 && phase.files > 0 {
        let rate = phase.files as f64 / phase.seconds;
        figures.add(place, &phase.name, Quantity::OperationsPerSecond, Some(rate));
    }
    let cpu = (gb > 0.0).then_some(phase.cpu_seconds / gb);
    figures.add(place, &phase.name, Quantity::CpuSecondsPerGb, cpu);
    let busy = phase.machine_cpu_seconds.filter(|_| phase.seconds >= BUSY_SECONDS_MIN);
    let busy = busy.map(|cpu| cpu / phase.seconds);
    figures.add(place, &phase.name, Quantity::CoresBusy, busy);
    figures.add_latency(place, &phase.name, phase.latency.as_ref());
    // For a single kind the parts repeat what the phase reports.
    if phase.parts.iter().any(|part| part.writes) && phase.parts.iter().any(|part| !part.writes) {
        for (writes, doers) in [(true, "writers"), (false, "readers")] {
            let rates = phase.parts.iter().filter(|part| part.writes == writes);
            let rate = rates.filter_map(DiskPart::bytes_per_second).reduce(|a, b| a + b);
            let what = format!("{}: {doers}", phase.name);
            figures.add(place, &what, Quantity::BytesPerSecond, rate);
        }
    }
}
