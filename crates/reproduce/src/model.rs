//! Published figures of a paper beside the predictions of the model.
use keepup_model::predicted_papers;
use keepup_results::format::digits;
use keepup_results::{PaperCell, PaperColumn, PaperRow, PaperTable, PredictedCell};

/// Draws from the ranges of the model's numbers, and their seed.
const SAMPLES: u32 = keepup_model::SAMPLES;
const SEED: u64 = 1;

/// Table of the figures that the model predicts for a paper's machines, as `keepup predict papers` does;
/// `None` without any. `stands` is the place of the figures.
pub(crate) fn table(paper: &str, stands: &str) -> Option<PaperTable> {
    let found = predicted_papers(&[paper.to_owned()], SAMPLES, SEED).ok()?;
    let rows: Vec<PaperRow> = found.cells.iter().map(row).collect();
    let column = |title: &str| PaperColumn::new(title, "");
    (!rows.is_empty()).then(|| PaperTable {
        title: "Predictions of the model".into(),
        stands: stands.into(),
        head: "figure".into(),
        columns: ["published", "model", "origin"].map(column).into(),
        rows,
    })
}

fn row(cell: &PredictedCell) -> PaperRow {
    let value = |value: f64| format!("{} {}", digits(value), cell.unit).trim_end().to_owned();
    let range = cell.lower.zip(cell.upper).filter(|(lower, upper)| lower < upper);
    let range = range.map(|(lower, upper)| format!(" ({} to {})", digits(lower), digits(upper)));
    let words = [cell.condition.as_str(), &cell.quantity];
    let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>();
    PaperRow {
        name: words.join(", "),
        is_here: false,
        cells: vec![
            PaperCell::words(value(cell.published)),
            PaperCell::words(format!("{}{}", value(cell.predicted), range.unwrap_or_default())),
            PaperCell::words(cell.origin.name()),
        ],
        note: Some(cell.because.clone()),
    }
}
