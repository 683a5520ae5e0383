//! `keepup register replay-note`: published figures of CERN-BE-2009-032 with keepup's fit.
use keepup_measure::stats::{Cost, Timed, fit_cost, pays_from};

use crate::exit::Exit;
use crate::output::result;

/// Size of a location, in bytes.
const LOCATION_BYTES: f64 = 4.0;
/// Depth and us for each location, single accesses on the L865 (sections 3.1 to 3.4 of the note).
const SINGLE: [(u64, f64); 4] = [(1, 3.1), (0x100, 2.33), (0x10000, 2.42), (0x80000, 2.42)];
/// Depth, us for each location, and the rate as printed: block transfer and DMA (sections 3.4.2 and 3.4.4).
const BLOCK: (u64, f64, f64) = (0x80000, 0.47, 8.11);
const DMA: (u64, f64, f64) = (0x10000, 0.35, 10.89);
/// Rate of single accesses as printed in both tables.
const SINGLE_RATE: f64 = 1.56;
/// Set-up time of a DMA transfer in seconds, and the note's break-even in words (section 3.4.4).
const DMA_SET_UP: f64 = 2e-3;
const DMA_PAYS_FROM: u64 = 1800;
/// us for each location on the PPC4, single accesses (section 3.3).
const PPC_EACH: f64 = 1.0;

pub(super) fn replay() -> anyhow::Result<Exit> {
    result(&report().join("\n"));
    Ok(Exit::Done)
}

fn line(set_up: f64, each_us: f64) -> Cost {
    Cost { set_up, each: each_us / 1e6, words_max: None }
}

/// Published figures, fitted costs and break-even points.
fn report() -> Vec<String> {
    let points = SINGLE.map(|(depth, us)| Timed { words: depth, seconds: vec![us / 1e6 * depth as f64] });
    let single = fit_cost(&points, None).unwrap_or_else(|| line(0.0, SINGLE[3].1));
    let mut lines = vec![format!(
        "{:<22} {:>8} {:>14} {:>14} {:>8} {:>8} {:>10}",
        "L865, as published", "depth", "us/location", "fit", "MB/s", "MiB/s", "printed"
    )];
    let mut row = |what: &str, depth: u64, us: f64, by_line: Option<f64>, printed: Option<f64>| {
        let figure = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.2}"));
        lines.push(format!(
            "{what:<22} {:>8} {us:>14.2} {:>14} {:>8.2} {:>8.2} {:>10}",
            format!("{depth:#x}"),
            figure(by_line),
            LOCATION_BYTES / us,
            LOCATION_BYTES / us * 1e6 / 1_048_576.0,
            figure(printed)
        ));
    };
    for (depth, us) in SINGLE {
        let by_line = single.at(depth) / depth as f64 * 1e6;
        row("single access", depth, us, Some(by_line), (depth > 0x100).then_some(SINGLE_RATE));
    }
    row("block transfer", BLOCK.0, BLOCK.1, None, Some(BLOCK.2));
    row("DMA", DMA.0, DMA.1, None, Some(DMA.2));
    let from = |simple: &Cost, set_up: f64| {
        pays_from(simple, &line(set_up, DMA.1)).map_or_else(|| "-".into(), |words| format!("{words:.0}"))
    };
    let halves = Cost { each: single.each / 2.0, set_up: single.set_up, words_max: None };
    let of_halves = pays_from(&halves, &line(DMA_SET_UP, DMA.1 / 2.0));
    lines.extend([
        String::new(),
        format!(
            "single access: T(n) = {:.2} us + n x {:.3} us; the note's MB/s are MiB/s",
            single.set_up * 1e6,
            single.each * 1e6
        ),
        format!(
            "DMA with a set-up of {:.0} ms is faster than single access from {} words of 32 bits",
            DMA_SET_UP * 1e3,
            from(&single, DMA_SET_UP)
        ),
        format!(
            "  from {} words of 16 bits at half the time each; from {} words compared with the PPC4's \
             {PPC_EACH} us",
            of_halves.map_or_else(|| "-".into(), |words| format!("{words:.0}")),
            from(&line(0.0, PPC_EACH), DMA_SET_UP)
        ),
        format!("  the note says {DMA_PAYS_FROM}, which does not follow from its set-up and times per word"),
    ]);
    lines
}

#[cfg(test)]
#[path = "note_tests.rs"]
mod tests;
