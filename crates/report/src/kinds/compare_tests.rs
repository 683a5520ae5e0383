//! Pages of comparisons with too few values.
use keepup_results::{
    CompareSummary, ComparedInterval, ComparedRuns, IntervalPosition, Stored, StoredResult,
};

use crate::{History, Style, html, markdown, terminal, terminal_full};

const WIDE: Style = Style { colour: false, width: 100_000 };

fn sample(path: &str) -> CompareSummary {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    let Stored::Compare(found) = StoredResult::open(path.as_ref()).unwrap().summary else { panic!() };
    *found
}

/// Every form of a page.
fn forms(summary: CompareSummary) -> [String; 4] {
    let stored = Stored::Compare(Box::new(summary));
    [
        terminal(&stored, WIDE),
        terminal_full(&stored, WIDE),
        markdown(&stored),
        html(&stored, &History::default()),
    ]
}

fn needed(spread: Option<f64>) -> ComparedRuns {
    ComparedRuns {
        system: "/data/b".into(),
        difference: 0.05,
        figure: spread.map_or_else(String::new, |_| "write 1 at once, rate".into()),
        spread,
        runs: 5,
        more_of_baseline: 3,
        more_of_system: 1,
    }
}

#[test]
fn too_few_values_have_no_ratio_on_any_page_but_the_runs_that_are_missing() {
    // Its ratio of 0.56 and index of 0.80 were measured with two values on each side.
    let mut summary = sample("../results/samples/compare-v1.json");
    summary.runs_needed = vec![needed(Some(0.032))];
    for text in forms(summary.clone()) {
        assert!(text.contains("too few values") && text.contains("TOO FEW RUNS"), "{text}");
        for rank in ["0.56", "0.8x", "0.80", "Index of each system", "Ratio of each", "ratios to the"] {
            assert!(!text.contains(rank), "{rank}: {text}");
        }
        assert!(text.contains("/data/b is not ranked against /data/a: too few values."), "{text}");
        let remedy = "3 more runs of /data/a and 1 more run of /data/b would resolve a difference of 5 %: \
                      the largest spread is 3.2 % (write 1 at once, rate).";
        assert!(text.contains(remedy), "{text}");
    }
    summary.runs_needed = vec![needed(None)];
    for text in forms(summary) {
        assert!(text.contains("are the least that the test accepts, 5 of each."), "{text}");
    }
}

#[test]
fn both_ends_of_qualified_rates_are_shown_and_what_they_do_not_decide() {
    let mut summary = sample("../results/samples/compare-v1.json");
    let interval = |system: &str, held: f64, failed, position| ComparedInterval {
        system: system.into(),
        held_bytes_per_second: held,
        failed_bytes_per_second: failed,
        position,
    };
    summary.runs_needed = vec![needed(None)];
    for (position, words) in [
        (IntervalPosition::Overlaps, "The intervals overlap: neither system is shown to be faster."),
        (IntervalPosition::Above, "The intervals do not overlap, but"),
    ] {
        summary.qualified = vec![
            interval("/data/a", 1.43e9, Some(1.61e9), None),
            interval("/data/b", 1.49e9, None, Some(position)),
        ];
        for text in forms(summary.clone()) {
            let ends = "/data/b held 1.49 GB/s, and no rate above it failed; /data/a held 1.43 GB/s and \
                        failed at 1.61 GB/s.";
            assert!(text.contains(ends) && text.contains(words), "{text}");
        }
    }
}

#[test]
fn enough_values_are_ranked_as_before() {
    let text = forms(sample("tests/compare.json")).concat();
    assert!(text.contains("disk b: 1.11x disk a (1.04 to 1.17 at 95 %)"), "{text}");
    assert!(!text.contains("TOO FEW RUNS") && !text.contains("not ranked against"), "{text}");
}
