//! Pages of many outcomes, searched for sentences that contradict the trials, and the search itself: each
//! contradiction is found. `tests/results/coherence.rs` searches the pages of simulated qualifications.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "contradictions/check.rs"]
mod check;

use std::path::Path;

use keepup_results::{
    Bottleneck, CounterPair, CounterRate, CounterTrial, ExpectedEffect, FailedRate, KneeInterval,
    ResultSummary, Stored, StoredResult, TrialResult, Verdict,
};
use proptest::prelude::*;

use check::{BADGE, BRIEF, FULL, HTML, MARKDOWN, contradictions, facts, mixed_units, pages};

fn sample() -> ResultSummary {
    let path = format!("{}/tests/fit.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Purpose of a trial, or that its source failed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TrialKind {
    Unthrottled,
    Narrow,
    Soak,
    SourceFailed,
}

/// A trial or soak at a rate in MB/s with the events lost, or a backlog.
type Drawn = (u32, u64, bool, TrialKind);

fn any_trials() -> impl Strategy<Value = Vec<Drawn>> {
    let lost = prop_oneof![2 => Just(0u64), 1 => 1..1000u64];
    let kind = prop_oneof![
        1 => Just(TrialKind::Unthrottled),
        4 => Just(TrialKind::Narrow),
        4 => Just(TrialKind::Soak),
        1 => Just(TrialKind::SourceFailed),
    ];
    prop::collection::vec((90u32..2000, lost, any::<bool>(), kind), 1..30)
}

fn trial((rate, lost_events, backlog_growing, kind): Drawn) -> TrialResult {
    // Without a schedule the source drops nothing and has no backlog.
    let is_scheduled = kind != TrialKind::Unthrottled;
    let (lost_events, backlog_growing) =
        (lost_events * u64::from(is_scheduled), backlog_growing && is_scheduled);
    let failed = match kind {
        TrialKind::SourceFailed => Some(TrialResult::SOURCE_FAILED),
        _ if lost_events > 0 => Some("events were lost"),
        _ => backlog_growing.then_some("the backlog grew"),
    };
    let bytes_per_second = f64::from(rate) * 1e6;
    TrialResult {
        phase: match kind {
            TrialKind::Unthrottled => "saturated",
            TrialKind::Soak => "soak",
            TrialKind::Narrow | TrialKind::SourceFailed => "narrow",
        }
        .to_owned(),
        seconds: if kind == TrialKind::Soak { 60.0 } else { 5.0 },
        asked_bytes_per_second: bytes_per_second,
        achieved_bytes_per_second: bytes_per_second,
        durable_bytes_per_second: 0.97 * bytes_per_second,
        lost_events,
        backlog_growing,
        passed: failed.is_none(),
        failed_condition: failed.map(str::to_owned),
        ..sample().trials[0].clone()
    }
}

/// The sample with other trials, and everything that follows from them.
fn summary(trials: Vec<TrialResult>, usable_bytes: u64) -> ResultSummary {
    let mut summary = sample();
    let soaks = trials.iter().filter(|trial| trial.phase == "soak" && trial.passed);
    let held = soaks.map(|trial| trial.asked_bytes_per_second).reduce(f64::max);
    let above = |trial: &&TrialResult| held.is_none_or(|held| trial.asked_bytes_per_second > held);
    let failed = trials.iter().filter(|trial| trial.machine_failed()).filter(above);
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
    summary.bottleneck.as_mut().unwrap().next = None;
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

fn counter(stage: &str, confirmed: bool, not_run: Option<&str>, pairs: Vec<CounterPair>) -> CounterTrial {
    CounterTrial {
        stage: stage.to_owned(),
        change: "a change".to_owned(),
        expected: if stage == "network" { ExpectedEffect::Holds } else { ExpectedEffect::Rises },
        pairs,
        confirmed,
        not_run: not_run.map(str::to_owned),
    }
}

/// Counter-trials of up to three nominees, refuted but for the last one, which may also be confirmed or not
/// run.
fn any_bottleneck() -> impl Strategy<Value = Bottleneck> {
    (0usize..3, 0usize..3, 90f64..2000.0, 0.05f64..2.0).prop_map(|(refuted, end, rate, ratio)| {
        let stages = ["volume /data", "network", "recorder CPU", "pool"];
        let pairs = |held: bool| vec![pair(rate * 1e6, ratio, held)];
        let of = |stage: &&str| counter(stage, false, None, pairs(false));
        let mut counter_trials: Vec<_> = stages.iter().take(refuted).map(of).collect();
        let mut stage = Bottleneck::NOT_RESOLVED;
        if end > 0 {
            stage = stages[refuted];
            counter_trials.push(match end {
                1 => counter(stage, true, None, pairs(true)),
                _ => counter(stage, false, Some("no memory"), vec![]),
            });
        }
        Bottleneck { stage: stage.into(), evidence: "candidates".into(), next: None, counter_trials }
    })
}

fn pair(rate: f64, ratio: f64, held: bool) -> CounterPair {
    let of = |bytes_per_second, held| CounterRate { bytes_per_second, held };
    CounterPair { unchanged: of(rate, false), changed: of(rate * ratio, held) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn no_page_contradicts_its_trials(
        trials in any_trials(),
        usable_gb in 1u64..2000,
        bottleneck in any_bottleneck(),
    ) {
        let mut summary = summary(trials.into_iter().map(trial).collect(), usable_gb * 1_000_000_000);
        summary.bottleneck = Some(bottleneck);
        prop_assert_eq!(contradictions(&summary, &pages(&summary)), Vec::<String>::new());
    }
}

/// Qualifications as they were stored: samples of every version, that of the README, and those beside this
/// file.
fn recorded() -> Vec<(String, ResultSummary)> {
    let folders = ["../results/samples", "../../docs/sample", "tests"];
    let files = folders.iter().flat_map(|folder| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
    });
    let json = files.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let open = |path: std::path::PathBuf| match StoredResult::open(&path).unwrap().summary {
        Stored::Qualify(summary) => Some((path.display().to_string(), *summary)),
        _ => None,
    };
    json.filter_map(open).collect()
}

/// The result without sentences of the version that measured it.
fn without_stored_texts(mut summary: ResultSummary) -> ResultSummary {
    let blank = |text: &mut String| *text = "a text".to_owned();
    summary.verdict_reasons.iter_mut().chain(&mut summary.limits).for_each(blank);
    if let Some(bottleneck) = &mut summary.bottleneck {
        blank(&mut bottleneck.evidence);
        bottleneck.next.iter_mut().for_each(|next| blank(&mut next.evidence));
    }
    (summary.plan, summary.environment) = (serde_json::json!({}), serde_json::json!({}));
    summary
}

#[test]
fn no_page_of_a_recorded_result_contradicts_it() {
    let recorded = recorded();
    assert!(recorded.len() >= 7, "{}", recorded.len());
    for (path, summary) in recorded {
        assert_eq!(facts(&summary, &pages(&summary)), Vec::<String>::new(), "{path}");
        let units = mixed_units(&pages(&without_stored_texts(summary)));
        assert_eq!(units, Vec::<String>::new(), "{path}");
    }
}

const MB: u64 = 1_000_000;

/// A result with a rate that failed: 120 MB/s held, 150 MB/s lost events.
fn failed() -> ResultSummary {
    let trials = [
        (140, 0, false, TrialKind::Unthrottled),
        (104, 0, false, TrialKind::Narrow),
        (150, 3, false, TrialKind::Narrow),
        (120, 0, false, TrialKind::Soak),
    ];
    let mut summary = summary(trials.into_iter().map(trial).collect(), 2_000_000 * MB);
    let found = summary.bottleneck.as_mut().unwrap();
    found.counter_trials = vec![counter("volume", true, None, vec![pair(1e9, 1.3, true)])];
    found.stage = "volume".to_owned();
    summary
}

/// A result in which nothing failed, with every sentence on what was not found.
fn passed() -> ResultSummary {
    let trials = [
        (140, 0, false, TrialKind::Unthrottled),
        (104, 0, false, TrialKind::Narrow),
        (120, 0, false, TrialKind::Soak),
    ];
    let mut summary = summary(trials.into_iter().map(trial).collect(), 2_000_000 * MB);
    let source =
        "the source may not keep its schedule at 150 MB/s or more, so the machine's limit was not found";
    summary.verdict_reasons = vec![source.to_owned()];
    summary.trials[1].stall_ms_max = Some(250.0);
    summary.limits = [
        "a trial had a stall of 250 ms; at the qualified rate the buffer bridges 200 ms, so another such \
         stall may lose events",
        "the longest run without loss took 60 s; the profile runs for 8 h",
        "no rate above 125 MB/s was tried, so the limit may be higher",
    ]
    .map(str::to_owned)
    .to_vec();
    summary
}

/// A result without a soak that held, interrupted.
fn nothing() -> ResultSummary {
    let trials = [(120, 9, false, TrialKind::Soak), (104, 7, true, TrialKind::Narrow)];
    let mut summary = summary(trials.into_iter().map(trial).collect(), 2_000_000 * MB);
    let slower = trial((100, 2, true, TrialKind::Narrow));
    summary.trials.push(TrialResult { phase: "recheck".into(), ..slower });
    let reasons = [
        "no rate passed the whole soak",
        "the headroom is smaller than wanted",
        "the machine became slower during the test: 120 MB/s before",
        "the machine kept slowing down, so no rate was proven",
    ];
    (summary.verdict_reasons, summary.interrupted) = (reasons.map(str::to_owned).to_vec(), true);
    summary.limits = vec!["no run at a set rate was without loss; the profile runs for 8 h".to_owned()];
    summary
}

#[test]
fn the_results_to_change_have_no_contradiction() {
    for summary in [failed(), passed(), nothing()] {
        assert_eq!(contradictions(&summary, &pages(&summary)), Vec::<String>::new());
    }
}

type Change = fn(&mut ResultSummary);

/// Changes one value of a result after its pages are drawn, and expects the contradiction.
fn assert_each_is_found(base: &ResultSummary, cases: &[(&str, Change)]) {
    let pages = pages(base);
    for (part, change) in cases {
        let mut changed = base.clone();
        change(&mut changed);
        let found = contradictions(&changed, &pages);
        assert!(found.iter().any(|text| text.contains(part)), "`{part}` is not in {found:#?}");
    }
}

#[test]
fn a_change_of_what_failed_contradicts_the_pages() {
    let cases: [(&str, Change); 15] = [
        ("brief: does not say NOT FIT", |s| s.verdict = Verdict::NotFit),
        ("html: does not say NOT FIT", |s| s.verdict = Verdict::NotFit),
        ("markdown: does not say FIT WITH", |s| s.verdict = Verdict::FitWithLimits),
        ("badge: does not say FIT", |s| s.qualified_bytes_per_second = Some(119e6)),
        ("brief: does not say that 119 MB/s held", |s| s.qualified_bytes_per_second = Some(119e6)),
        ("full: does not say what failed: `; 160 MB/s", |s| {
            s.failed_above.as_mut().unwrap().bytes_per_second = 160e6;
        }),
        ("markdown: `Lowest failure: ` stands", |s| s.failed_above = None),
        ("full: `lowest rate that failed` stands", |s| s.failed_above = None),
        ("full: has no row of a soak at 150 MB/s", |s| s.qualified_bytes_per_second = Some(150e6)),
        ("brief: does not name the limit network", |s| {
            s.bottleneck.as_mut().unwrap().stage = "network".into()
        }),
        ("html: confirms volume otherwise", |s| {
            s.bottleneck.as_mut().unwrap().counter_trials[0].confirmed = false;
        }),
        ("full: does not say `volume not tested", |s| {
            let counter = &mut s.bottleneck.as_mut().unwrap().counter_trials[0];
            (counter.confirmed, counter.not_run) = (false, Some("no memory".into()));
        }),
        ("html: does not say `The bottleneck was not", |s| {
            s.bottleneck.as_mut().unwrap().stage = Bottleneck::NOT_RESOLVED.into();
        }),
        ("brief: says otherwise whether the space", |s| s.storage.usable_bytes = Some(MB)),
        ("names a bottleneck that is not known", |s| s.bottleneck = None),
    ];
    assert_each_is_found(&failed(), &cases);
}

#[test]
fn a_change_of_losses_contradicts_the_pages() {
    let cases: [(&str, Change); 6] = [
        ("brief: says that nothing was lost", |s| s.ledger.lost.events = 1),
        ("html: has other losses than the ledger", |s| s.ledger.lost.events = 1),
        ("markdown: does not exclude 2,880 incidents", |s| {
            s.soak.as_mut().unwrap().upper_bound_loss_per_second = 0.1;
        }),
        ("full: says that a stall took longer than 0.1 s", |s| s.trials[1].stall_ms_max = Some(100.0)),
        ("full: says that a run without loss took longer than 5 s", |s| s.trials[2].lost_events = 1),
        ("full: says that a run without loss took longer than 0 s", |s| {
            s.trials.iter_mut().for_each(|trial| trial.lost_events = 1);
        }),
    ];
    assert_each_is_found(&passed(), &cases);
}

#[test]
fn a_failure_contradicts_that_nothing_failed() {
    let cases: [(&str, Change); 8] = [
        ("full: says that no rate failed", |s| s.trials[0].passed = false),
        ("brief: says that no higher rate failed", |s| {
            s.trials.push(trial((130, 1, false, TrialKind::Narrow)))
        }),
        ("full: says that no higher rate failed", |s| {
            s.trials.push(trial((130, 0, false, TrialKind::SourceFailed)));
        }),
        ("full: says that the machine's limit was not found", |s| {
            s.trials.push(trial((130, 1, false, TrialKind::Narrow)));
        }),
        ("full: says that the source may not keep 150 MB/s, but it offered 160 MB/s", |s| {
            s.trials.push(trial((160, 0, false, TrialKind::Narrow)));
        }),
        ("markdown: says that the source may not keep 150 MB/s, but it offered 160 MB/s", |s| {
            s.trials.push(trial((160, 2, false, TrialKind::Narrow)));
        }),
        ("html: says that the source may not keep 150 MB/s, but it offered 160 MB/s", |s| {
            s.trials.push(trial((160, 0, false, TrialKind::Unthrottled)));
        }),
        ("brief: says that nothing above 125 MB/s was tried", |s| {
            s.trials.push(trial((130, 0, false, TrialKind::Narrow)));
        }),
    ];
    assert_each_is_found(&passed(), &cases);
}

#[test]
fn a_rate_that_held_contradicts_that_none_did() {
    let hold: Change = |s| {
        let soak = sample().soak;
        (s.qualified_bytes_per_second, s.headroom, s.soak) = (Some(120e6), Some(1.5), soak);
    };
    let cases: [(&str, Change); 6] = [
        ("full: says that no rate passed a soak", hold),
        ("markdown: says that no rate was proven", hold),
        ("html: says that the machine became slower", |s| s.trials[2].phase = "narrow".into()),
        ("brief: calls a wanted headroom too small", |s| s.headroom = Some(1.5)),
        ("brief: says it was interrupted", |s| s.interrupted = false),
        ("brief: says that no run was without loss", |s| s.trials[1].lost_events = 0),
    ];
    assert_each_is_found(&nothing(), &cases);
}

#[test]
fn a_point_that_is_not_the_rate_of_its_trial_contradicts_the_chart() {
    let cases: [(&str, Change); 3] = [
        ("html: has a point of \"asked\" that is not the requested rate", |s| {
            s.trials[1].asked_bytes_per_second = s.trials[1].durable_bytes_per_second;
        }),
        ("html: has a point of \"durable, passed\" that is not the durable rate", |s| {
            s.trials[1].durable_bytes_per_second = s.trials[1].asked_bytes_per_second;
        }),
        ("html: has no chart of the trials", |s| drop(s.trials.pop())),
    ];
    assert_each_is_found(&passed(), &cases);
}

/// Contradictions after a change of one page.
fn with_page(summary: &ResultSummary, form: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let mut pages = pages(summary);
    let page = pages.iter_mut().find(|(other, _)| *other == form).unwrap();
    let changed = change(&page.1);
    assert_ne!(changed, page.1, "{form}");
    page.1 = changed;
    contradictions(summary, &pages)
}

/// The rate stands elsewhere on the page, and other rows are soaks.
#[test]
fn a_page_without_the_row_of_the_soak_is_found() {
    let mut summary = failed();
    summary.trials.push(trial((150, 2, false, TrialKind::Soak)));
    let without = |text: &str, start: &str| -> String {
        let is_kept = |line: &&str| !(line.trim_start().starts_with(start) && line.contains("120 MB/s"));
        let lines: Vec<&str> = text.lines().filter(is_kept).collect();
        assert!(lines.concat().contains("120 MB/s"));
        lines.join("\n")
    };
    let wanted = |form: &str| format!("{form}: has no row of a soak at 120 MB/s that held");
    assert_eq!(with_page(&summary, FULL, |text| without(text, "soak ")), [wanted(FULL)]);
    assert_eq!(with_page(&summary, MARKDOWN, |text| without(text, "| soak ")), [wanted(MARKDOWN)]);
    let renamed = |text: &str| text.replace("<td>soak</td>", "<td>knee</td>");
    assert_eq!(with_page(&summary, HTML, renamed), [wanted(HTML)]);
}

#[test]
fn a_requested_rate_of_a_trial_without_a_schedule_is_found() {
    for form in [FULL, MARKDOWN, HTML] {
        let found = with_page(&passed(), form, |text| text.replace("unthrottled", "140 MB/s"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("has a requested rate of a trial without one"), "{found:?}");
    }
    let bar = |text: &str| text.replacen("\"value\":null", "\"value\":140", 1);
    let wanted = "html: has a point of \"asked\" that is not the requested rate of its trial";
    assert_eq!(with_page(&passed(), HTML, bar), [wanted]);
}

#[test]
fn two_units_in_a_sentence_are_found() {
    let asked = |text: &str| text.replace("80.0 MB/s for 8 h", "80.0 MB/s of 0.12 GB/s for 8 h");
    let found = with_page(&passed(), BRIEF, asked);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("brief: mixes units in `80.0 MB/s of 0.12 GB/s for 8 h"), "{found:?}");
    let badge = |text: &str| text.replace("failed 150 MB/s", "failed 0.15 GB/s");
    let found = with_page(&failed(), BADGE, badge);
    assert!(found.iter().any(|text| text.starts_with("badge: mixes units")), "{found:?}");
    // A load is written as the user wrote it.
    let load = |text: &str| text.replace("80.0 MB/s for 8 h", "80.0 MB/s beside `2 GB/s` for 8 h");
    assert_eq!(with_page(&passed(), BRIEF, load), Vec::<String>::new());
}
