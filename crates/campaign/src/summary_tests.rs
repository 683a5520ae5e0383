//! Pooled figures, and ratios that point the right way.
use keepup_results::Quantity;

use super::*;
use crate::file::parse;
use crate::forecast::Forecasts;

fn figure(place: &str, quantity: Quantity, values: &[f64]) -> Figure {
    Figure {
        place: place.into(),
        what: "write".into(),
        quantity,
        values: values.to_vec(),
        is_too_short: false,
    }
}

fn begun() -> Begun {
    Begun {
        id: "0123abcd".into(),
        tool_version: "0.1.0".into(),
        created_unix_ns: 0,
        command: "keepup campaign run c.toml".into(),
        workload: "c".into(),
        plan: serde_json::Value::Null,
        environment: serde_json::Value::Null,
    }
}

/// Two volumes and two depths, five repetitions; `measured` says what each run found.
fn summary(measured: &dyn Fn(u32, u32) -> Option<Vec<Figure>>) -> CampaignSummary {
    let text = r#"
        name = "c"
        repetitions = 5
        run = { verb = "disk sweep" }
        axes = { volume = ["a", "b"], depth = [1, 8] }
        baseline = { volume = "a", depth = 1 }
        skip = [{ when = { volume = "b", depth = 8 }, why = "no time" }]
    "#;
    let mut state = State::new(parse(text, "c", &[]).unwrap(), Forecasts::default());
    for repetition in 1..=5 {
        for cell in 1..=4 {
            let Some(figures) = measured(cell, repetition) else { continue };
            let run = RunDone { cell, repetition, figures, seconds: 0.5, ..RunDone::default() };
            state.take(run);
        }
    }
    summarise(&state, &begun(), None, Ended::default())
}

#[test]
fn more_than_one_is_better_whichever_way_a_quantity_goes() {
    let found = summary(&|cell, repetition| {
        let (place, factor) = if cell == 3 { ("b", 2.0) } else { ("a", 1.0) };
        let noise = 1.0 + f64::from(repetition) / 1000.0;
        Some(vec![
            figure(place, Quantity::BytesPerSecond, &[100.0 * factor * noise, 101.0 * factor]),
            figure(place, Quantity::P99Seconds, &[1.0 / factor * noise]),
            figure(place, Quantity::Bytes, &[factor]),
            figure(place, Quantity::Lost, &[0.0]),
        ])
    });
    let cell = &found.cells[2];
    assert_eq!((cell.baseline, cell.confounded), (Some(1), false));
    assert_eq!(cell.figures[0].values.len(), 10, "two values of each of five repetitions");
    let by: Vec<_> = cell.ratios.iter().map(|ratio| (ratio.quantity, ratio.pairs, ratio.flagged)).collect();
    assert_eq!(
        by,
        [
            (Quantity::BytesPerSecond, 10, true),
            (Quantity::P99Seconds, 5, true),
            // Neither better nor worse.
            (Quantity::Bytes, 5, false),
            // Nothing lost twice has no ratio.
        ]
    );
    for ratio in &cell.ratios {
        assert!((ratio.ratio - 2.0).abs() < 1e-9, "{ratio:?}");
        assert!(ratio.lower.unwrap() <= ratio.ratio && ratio.ratio <= ratio.upper.unwrap());
        assert_eq!(ratio.place, "b", "the place is the cell's own");
    }
    assert!(found.cells[0].ratios.is_empty());
    // The same twice is the same.
    assert!(found.cells[1].ratios.iter().all(|ratio| !ratio.flagged && ratio.ratio == 1.0));
    assert_eq!(found.cells[3].skipped.as_deref(), Some("no time"));
    assert!(found.cells[3].confounded && found.cells[3].alone == [3, 2]);
    assert_eq!((found.totals.runs, found.totals.planned, found.totals.skipped), (15, 15, 1));
    assert_eq!(found.totals.seconds, 7.5);
}

#[test]
fn few_pairs_have_a_ratio_and_no_flag() {
    let found = summary(&|cell, repetition| {
        let rate = if cell == 1 { 100.0 } else { 200.0 };
        // The baseline's third repetition is missing, and all of the other's but three.
        let is_there = if cell == 1 { repetition != 3 } else { repetition <= 3 };
        is_there.then(|| vec![figure("a", Quantity::BytesPerSecond, &[rate])])
    });
    let ratio = &found.cells[1].ratios[0];
    assert_eq!((ratio.pairs, ratio.ratio, ratio.flagged), (2, 2.0, false));
    // What took nothing once has no ratio, and none is made of the pairs that are left.
    let zero = summary(&|cell, repetition| {
        let busy = if cell == 2 && repetition == 2 { 0.0 } else { 1.0 };
        Some(vec![figure("a", Quantity::CpuSecondsPerGb, &[busy])])
    });
    assert!(zero.cells[1].ratios.is_empty(), "{:?}", zero.cells[1].ratios);
    let alone = summary(&|_, repetition| {
        (repetition == 1).then(|| vec![figure("a", Quantity::BytesPerSecond, &[7.0])])
    });
    let ratio = &alone.cells[1].ratios[0];
    assert_eq!((ratio.pairs, ratio.ratio, ratio.lower), (1, 1.0, None));
    assert_eq!(alone.totals.left, 12);
}

#[test]
fn a_campaign_without_figures_has_no_ratios() {
    let found = summary(&|_, _| Some(Vec::new()));
    assert!(found.cells.iter().all(|cell| cell.figures.is_empty() && cell.ratios.is_empty()));
    assert_eq!(found.cells[2].command, "keepup disk sweep --depth 1 --volume b");
}
