//! Figures of a qualification.
use super::ResultSummary;
use crate::figure::{Collected, Figure, Figures, Quantity};

impl Figures for ResultSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        let mut rate = |what: &str, value| figures.add("", what, Quantity::BytesPerSecond, value);
        rate("knee", self.knee_bytes_per_second);
        rate("qualified", self.qualified_bytes_per_second);
        rate("source alone", self.ceilings.source_bytes_per_second);
        rate("network alone", self.ceilings.network_bytes_per_second);
        for volume in &self.ceilings.volumes {
            let value = volume.bytes_per_second;
            figures.add(&volume.path, "volume alone", Quantity::BytesPerSecond, value);
        }
        figures.add("", "recorder", Quantity::CpuSecondsPerGb, self.cpu.seconds_per_gb);
        let measured = self.ledger.sent.events > 0;
        let lost = measured.then_some(self.ledger.lost.events as f64);
        figures.add("", "events, in the run that the verdict rests on", Quantity::Lost, lost);
        figures.done()
    }
}
