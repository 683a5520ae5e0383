//! Pages of many outcomes, searched for sentences that contradict the trials.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use keepup_report::{Style, markdown, terminal, terminal_full};
use keepup_results::format::rate;
use keepup_results::{FailedRate, KneeInterval, ResultSummary, Stored, TrialResult, Verdict};
use proptest::prelude::*;

const STYLE: Style = Style { colour: false, width: 100 };

fn sample() -> ResultSummary {
    let path = format!("{}/tests/fit.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Trials and soaks at rates in MB/s, each with the events lost, or a backlog.
fn any_trials() -> impl Strategy<Value = Vec<(u32, u64, bool, bool)>> {
    let lost = prop_oneof![2 => Just(0u64), 1 => 1..1000u64];
    prop::collection::vec((90u32..2000, lost, any::<bool>(), any::<bool>()), 1..30)
}

fn trial((rate, lost_events, backlog_growing, is_soak): (u32, u64, bool, bool)) -> TrialResult {
    let passed = lost_events == 0 && !backlog_growing;
    let failed = if lost_events > 0 { "events were lost" } else { "the backlog grew" };
    let bytes_per_second = f64::from(rate) * 1e6;
    TrialResult {
        phase: if is_soak { "soak" } else { "narrow" }.to_owned(),
        asked_bytes_per_second: bytes_per_second,
        achieved_bytes_per_second: bytes_per_second,
        durable_bytes_per_second: bytes_per_second,
        lost_events,
        backlog_growing,
        passed,
        failed_condition: (!passed).then(|| failed.to_owned()),
        ..sample().trials[0].clone()
    }
}

/// The sample with other trials, and everything that follows from them.
fn summary(trials: Vec<TrialResult>, usable_bytes: u64) -> ResultSummary {
    let mut summary = sample();
    let soaks = trials.iter().filter(|trial| trial.phase == "soak" && trial.passed);
    let held = soaks.map(|trial| trial.asked_bytes_per_second).reduce(f64::max);
    let above = |trial: &&TrialResult| held.is_none_or(|held| trial.asked_bytes_per_second > held);
    let failed = trials.iter().filter(|trial| !trial.passed).filter(above);
    let lowest = failed.min_by(|a, b| a.asked_bytes_per_second.total_cmp(&b.asked_bytes_per_second));
    summary.failed_above = lowest.map(|trial| FailedRate {
        bytes_per_second: trial.asked_bytes_per_second,
        seconds: trial.seconds,
        lost_events: trial.lost_events,
        condition: trial.failed_condition.clone().unwrap(),
    });
    summary.qualified_bytes_per_second = held;
    summary.headroom = held.map(|held| held / summary.required_bytes_per_second);
    summary.soak = summary.soak.filter(|_| held.is_some());
    // The next limit of the sample is below some of these rates.
    summary.bottleneck.as_mut().unwrap().next.as_mut().unwrap().bytes_per_second = None;
    summary.knee_bytes_per_second = held;
    let upper = summary.failed_above.as_ref().map(|failed| failed.bytes_per_second);
    summary.knee_interval =
        held.map(|held| KneeInterval { lower_bytes_per_second: held, upper_bytes_per_second: upper });
    (summary.storage.run_bytes, summary.storage.usable_bytes) = (Some(1_000_000_000_000), Some(usable_bytes));
    let is_full = usable_bytes < 1_000_000_000_000;
    summary.storage.hours_of_storage_left_at_required = Some(usable_bytes as f64 / 1e12 * 8.0);
    summary.verdict = match (summary.headroom, is_full) {
        (Some(headroom), false) if headroom >= summary.headroom_wanted => Verdict::Fit,
        (Some(headroom), _) if headroom >= 1.0 => Verdict::FitWithLimits,
        _ => Verdict::Inconclusive,
    };
    summary.verdict_reasons = vec!["a reason".to_owned()];
    summary.trials = trials;
    summary
}

/// Text without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #[test]
    fn no_page_contradicts_its_trials(trials in any_trials(), usable_gb in 1u64..2000) {
        let usable_bytes = usable_gb * 1_000_000_000;
        let trials: Vec<TrialResult> = trials.into_iter().map(trial).collect();
        let summary = summary(trials, usable_bytes);
        prop_assert_eq!(summary.check(), Vec::<String>::new());
        let stored = Stored::Qualify(Box::new(summary.clone()));
        let (brief, full) = (flat(&terminal(&stored, STYLE)), flat(&terminal_full(&stored, STYLE)));
        let pages = [brief.clone(), full.clone(), flat(&markdown(&stored))];
        let all_passed = summary.trials.iter().all(|trial| trial.passed);
        for page in &pages {
            prop_assert!(!page.contains("no rate failed") || all_passed, "{}", page);
            let has_failed = summary.failed_above.is_some();
            prop_assert!(!page.contains("no higher rate failed") || !has_failed, "{}", page);
        }
        for page in &pages[..2] {
            // Both ends of what was found.
            if let Some(held) = summary.qualified_bytes_per_second {
                let shown = page.contains(&format!("held {}", rate(held)));
                prop_assert!(shown, "{}", page);
                if let Some(failed) = &summary.failed_above {
                    let upper = rate(failed.bytes_per_second);
                    let how = if failed.lost_events > 0 { "lost" } else { "failed" };
                    prop_assert!(page.contains(&format!("{upper} {how}")), "{}", page);
                }
            }
            let is_full = usable_bytes < 1_000_000_000_000;
            prop_assert_eq!(page.contains("space full after"), is_full, "{}", page);
        }
        // The soak that the verdict rests on is among the trials that are shown.
        if let Some(held) = summary.qualified_bytes_per_second {
            prop_assert!(full.contains("soak") && full.contains(&rate(held)), "{}", full);
        }
    }
}
