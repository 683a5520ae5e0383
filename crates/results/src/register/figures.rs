//! Figures of a register test.
use super::RegisterSummary;
use crate::figure::{Collected, Figure, Figures, Quantity};

impl Figures for RegisterSummary {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = Collected::default();
        let Some(run) = &self.run else { return Vec::new() };
        for method in &run.methods {
            for point in method.points.iter().filter(|point| point.depth > 0) {
                let what = format!("{}, {} at a time", method.name, point.depth);
                for seconds in &point.seconds {
                    let each = seconds / point.depth as f64;
                    figures.add(&run.target, &what, Quantity::SecondsPerRegister, Some(each));
                }
            }
        }
        for fit in &self.fits {
            let set_up = fit.elapsed.as_ref().map(|cost| cost.set_up_seconds);
            figures.add(&run.target, &fit.method, Quantity::SetUpSeconds, set_up);
            let each = fit.elapsed.as_ref().map(|cost| cost.each_seconds);
            figures.add(&run.target, &fit.method, Quantity::SecondsPerRegister, each);
        }
        figures.done()
    }
}
