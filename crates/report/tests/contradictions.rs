//! Pages of many outcomes, searched for sentences that contradict the trials.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use keepup_report::{Style, markdown, terminal, terminal_full};
use keepup_results::format::{rate, rate_like};
use keepup_results::{
    Bottleneck, CounterPair, CounterRate, CounterTrial, ExpectedEffect, FailedRate, KneeInterval,
    ResultSummary, Stored, TrialResult, Verdict,
};
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

/// Counter-trials of up to three nominees, refuted but for the last one, which may also be confirmed or not
/// run.
fn any_bottleneck() -> impl Strategy<Value = Bottleneck> {
    (0usize..3, 0usize..3, 90f64..2000.0, 0.5f64..2.0).prop_map(|(refuted, end, rate, ratio)| {
        let stages = ["volume /data", "network", "recorder CPU", "pool"];
        let counter = |index: usize, confirmed: bool, not_run: Option<&str>| CounterTrial {
            stage: stages[index].into(),
            change: "a change".into(),
            expected: [ExpectedEffect::Rises, ExpectedEffect::Holds][index % 2],
            pairs: if not_run.is_some() { vec![] } else { vec![pair(rate * 1e6, ratio, confirmed)] },
            confirmed,
            not_run: not_run.map(str::to_owned),
        };
        let mut counter_trials: Vec<_> = (0..refuted).map(|index| counter(index, false, None)).collect();
        let mut stage = Bottleneck::NOT_RESOLVED;
        if end > 0 {
            stage = stages[refuted];
            counter_trials.push(counter(refuted, end == 1, (end == 2).then_some("no memory")));
        }
        Bottleneck { stage: stage.into(), evidence: "candidates".into(), next: None, counter_trials }
    })
}

fn pair(rate: f64, ratio: f64, held: bool) -> CounterPair {
    let of = |bytes_per_second, held| CounterRate { bytes_per_second, held };
    CounterPair { unchanged: of(rate, false), changed: of(rate * ratio, held) }
}

/// The limit is named as the counter-trials say.
fn check_bottleneck(found: &Bottleneck, brief: &str, full: &str) -> Result<(), TestCaseError> {
    let is_resolved = found.stage != Bottleneck::NOT_RESOLVED;
    let doubt = if is_resolved && !found.is_confirmed() { " (not confirmed)" } else { "" };
    let limit = format!("limit {}{doubt}", found.stage);
    for page in [brief, full] {
        let is_shown = page.contains(&limit) || found.counter_trials.is_empty();
        prop_assert!(is_shown, "no `{}` in {}", limit, page);
        prop_assert_eq!(page.contains("(not confirmed)"), !doubt.is_empty(), "{}", page);
    }
    prop_assert_eq!(full.contains("The bottleneck is"), is_resolved, "{}", full);
    for counter in &found.counter_trials {
        let how = match (counter.confirmed, &counter.not_run) {
            (true, _) => "confirmed",
            (false, Some(_)) => "not tested",
            (false, None) => "not confirmed",
        };
        prop_assert!(full.contains(&format!("{} {how}, a change", counter.stage)), "{}", full);
    }
    Ok(())
}

/// Text without line breaks.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

proptest! {
    #[test]
    fn no_page_contradicts_its_trials(
        trials in any_trials(),
        usable_gb in 1u64..2000,
        bottleneck in any_bottleneck(),
    ) {
        let usable_bytes = usable_gb * 1_000_000_000;
        let trials: Vec<TrialResult> = trials.into_iter().map(trial).collect();
        let mut summary = summary(trials, usable_bytes);
        summary.bottleneck = Some(bottleneck);
        prop_assert_eq!(summary.check(), Vec::<String>::new());
        let stored = Stored::Qualify(Box::new(summary.clone()));
        let (brief, full) = (flat(&terminal(&stored, STYLE)), flat(&terminal_full(&stored, STYLE)));
        check_bottleneck(summary.bottleneck.as_ref().unwrap(), &brief, &full)?;
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
                    let upper = rate_like(failed.bytes_per_second, held);
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
