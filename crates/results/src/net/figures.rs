//! Figures of a network test.
use super::{NetRun, NetSummary};
use crate::figure::{Collected, Figure, Figures, Quantity};

impl Figures for NetSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        for run in &self.runs {
            add_run(&mut figures, run);
        }
        // The search has the shortest of its trials.
        figures.measured_for(self.runs.iter().filter_map(NetRun::window_seconds).reduce(f64::min));
        if let Some(finding) = &self.finding {
            let knee = finding.knee_lower_bytes_per_second;
            figures.add("", "highest without loss", Quantity::BytesPerSecond, knee);
            figures.add("", "safe", Quantity::BytesPerSecond, finding.safe_bytes_per_second);
        }
        figures.done()
    }
}

fn add_run(figures: &mut Collected, run: &NetRun) {
    let mut servers: Vec<&str> = run.flows.iter().map(|flow| flow.server.as_str()).collect();
    servers.dedup();
    let place = servers.join(" + ");
    figures.measured_for(run.window_seconds());
    let gb = run.received_bytes() as f64 / 1e9;
    figures.add(&place, &run.name, Quantity::BytesPerSecond, run.goodput(None));
    for end in run.ends.iter().filter(|_| gb > 0.0) {
        let what = format!("{}: {}", run.name, end.name);
        figures.add(&place, &what, Quantity::CpuSecondsPerGb, Some(end.cpu_seconds / gb));
    }
    let latency = run.latency.as_ref().and_then(|latency| latency.figures.as_ref());
    figures.add_latency(&place, &run.name, latency);
    let lost = run.ledger.as_ref().map(|ledger| ledger.lost as f64);
    figures.add(&place, &run.name, Quantity::Lost, lost);
}
