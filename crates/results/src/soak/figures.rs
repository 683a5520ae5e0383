//! Figures of a bit-error test.
use super::{SoakPart, SoakSummary};
use crate::figure::{Collected, Figure, Figures, Quantity};

impl Figures for SoakSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        for (what, part) in [("write", self.totals.write), ("read back", self.totals.read)] {
            figures.measured_for(Some(part.elapsed_ns as f64 / 1e9));
            figures.add("", what, Quantity::BytesPerSecond, rate(part));
            let gb = part.bytes as f64 / 1e9;
            let cpu = (gb > 0.0).then(|| part.cpu_ns as f64 / 1e9 / gb);
            figures.add("", what, Quantity::CpuSecondsPerGb, cpu);
        }
        let read = (self.totals.files > 0).then_some(self.damage.bytes as f64);
        figures.add("", "wrong bytes", Quantity::Lost, read);
        figures.done()
    }
}

fn rate(part: SoakPart) -> Option<f64> {
    (part.elapsed_ns > 0 && part.bytes > 0).then(|| part.bytes as f64 / (part.elapsed_ns as f64 / 1e9))
}
