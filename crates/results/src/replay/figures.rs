//! Figures of a replay: only warm passes that kept their timing.
use super::ReplaySummary;
use crate::figure::{Collected, Figure, Figures, Quantity};

impl Figures for ReplaySummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        for pass in self.passes.iter().filter(|pass| !pass.is_cold && pass.is_usable()) {
            let (place, trace) = (&pass.place, &pass.trace);
            figures.measured_for(Some(pass.seconds));
            let times = pass.all.as_ref();
            let what = format!("{trace}: service");
            figures.add_latency(place, &what, times.map(|times| &times.service));
            let what = format!("{trace}: response");
            figures.add_latency(place, &what, times.map(|times| &times.response));
            figures.add(place, trace, Quantity::BytesPerSecond, pass.bytes_per_second());
            figures.add(place, trace, Quantity::OperationsPerSecond, pass.requests_per_second());
            let gb = (pass.bytes_read + pass.bytes_written) as f64 / 1e9;
            figures.add(place, trace, Quantity::CpuSecondsPerGb, (gb > 0.0).then(|| pass.cpu_seconds / gb));
        }
        figures.done()
    }
}
