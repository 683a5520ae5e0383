//! Findings and answers of the CDF logger paper for this machine.
use keepup_measure::stats::median;
use keepup_model::papers::PaperUnit;
use keepup_plan::builtin;
use keepup_results::PaperAnswer;

use super::tables::{
    DETECTORS, MB, best, flows, growth, logged, moved, needed, of_phases, throttled_settings, together,
};
use super::{DETECTOR, DIRECT, FILES_MAX, LOGGER, TO_NULL, TWO_READ, TWO_WRITE};
use crate::NOT_MEASURED;
use crate::fleet::Question;
use crate::measured::Reproduced;
use crate::published::PublishedPaper;

/// Findings, as in the paper.
pub(super) fn findings(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<String> {
    let mut findings: Vec<String> = Vec::new();
    findings.extend(simultaneous(found));
    findings.extend(beside_writers(found, edition));
    for (kind, words) in [(TWO_WRITE, "writing"), (TWO_READ, "reading")] {
        let shares = together(found, kind).and_then(|figures| median(&figures[2]));
        findings.extend(shares.map(|share| {
            format!(
                "Concurrent volumes, {words}: {share:.0} % of the sum of the single rates; two independent \
                 disks would reach about 100 %."
            )
        }));
    }
    findings.extend(by_flows(found, edition));
    findings.extend(cost_of_writing(found, edition));
    findings
}

/// Whether the ranges of two samples do not overlap.
fn apart(one: &[f64], other: &[f64]) -> bool {
    let ends = |values: &[f64]| {
        Some((values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?))
    };
    let (Some(one), Some(other)) = (ends(one), ends(other)) else { return false };
    one.1 < other.0 || other.1 < one.0
}

/// Rate that the logger loses by writing to disks.
fn cost_of_writing(found: &Reproduced<'_>, edition: &PublishedPaper) -> Option<String> {
    let with: Vec<Vec<f64>> =
        found.cells_of_kind(LOGGER).iter().map(|(_, cell)| logged(cell)[1].clone()).collect();
    let with =
        with.into_iter().max_by(|a, b| median(a).unwrap_or(0.0).total_cmp(&median(b).unwrap_or(0.0)))?;
    let without = found.cells_of_kind(TO_NULL).first().map(|(_, cell)| logged(cell)[1].clone())?;
    let (disk, null) = (median(&with)?, median(&without)?);
    let published = |condition| edition.number("K7", ["", condition, "rate"], PaperUnit::MegabytesPerSecond);
    let lost = 100.0 * (1.0 - published("all")? / published("without writing")?);
    let what = format!("The logger reaches {disk:.0} MB/s with disks and {null:.0} MB/s without");
    Some(match apart(&with, &without) {
        true => format!(
            "{what}: writing costs {:.0} % of the rate (paper: {lost:.0} %).",
            100.0 * (1.0 - disk / null)
        ),
        false => {
            format!("{what}, no significant difference (paper: {lost:.0} % lost).")
        }
    })
}

/// Change of the rate with the number of files.
fn simultaneous(found: &Reproduced<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    for (place, cell) in found.cells_of_kind(DIRECT) {
        for verb in ["write", "read"] {
            let of = |n| of_phases(cell, &format!("{verb} {n} at once"), &moved);
            let (of_one, of_most) = (of(1), of(FILES_MAX));
            let (Some(one), Some(most)) = (median(&of_one), median(&of_most)) else { continue };
            findings.push(match apart(&of_one, &of_most) {
                true => format!(
                    "{place}: {FILES_MAX} concurrent {verb}s reach {:.2}x the rate of one ({most:.0} and \
                     {one:.0} MB/s).",
                    most / one
                ),
                false => format!(
                    "{place}: {FILES_MAX} concurrent {verb}s reach the rate of one, no significant \
                     difference ({most:.0} and {one:.0} MB/s)."
                ),
            });
        }
    }
    findings
}

fn beside_writers(found: &Reproduced<'_>, edition: &PublishedPaper) -> Option<String> {
    let settings = throttled_settings(found);
    let least = settings.iter().flat_map(|s| s.read.iter().copied()).reduce(f64::min)?;
    let (most, growths) = growth(&settings)?;
    let (low, high) = (growths.iter().copied().reduce(f64::min)?, growths.iter().copied().reduce(f64::max)?);
    Some(format!(
        "With throttled writers the reader stayed above {least:.0} MB/s (paper: at least {}). {most} writers \
         reach {low:.2} to {high:.2}x the rate of one; linear scaling would give {most}x.",
        edition.text("K4", ["", "", "read rate"], PaperUnit::MegabytesPerSecond)
    ))
}

fn by_flows(found: &Reproduced<'_>, edition: &PublishedPaper) -> Option<String> {
    let settings = flows(found);
    let of = |flows| {
        let same = settings.iter().filter(|(n, _, _)| *n == flows);
        let rates = same.filter_map(|(_, name, rates)| Some((name, median(rates)?)));
        rates.max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let irix = |processes| edition.number("K6", ["IRIX", processes, "rate"], PaperUnit::MebibytesPerSecond);
    let ((one_name, one), (two_name, two)) = (of(1)?, of(2)?);
    Some(format!(
        "Network: one flow reaches {one:.0} MiB/s ({one_name}), two flows {two:.0} MiB/s ({two_name}), \
         {:.2}x; two processes on the paper's IRIX reached {:.1}x.",
        two / one,
        irix("two processes")? / irix("one process")?
    ))
}

/// The paper's last question.
pub(super) fn hosts(edition: &PublishedPaper) -> Question<'static> {
    let rate = builtin(DETECTOR).map_or(0.0, |profile| profile.required_bytes_per_second());
    Question {
        profile: DETECTOR,
        question: format!("How many such machines are needed to buffer {:.0} MB/s?", rate / MB),
        published: format!(
            "{}, at {} MB/s each.",
            edition.text("K8", ["", "", "machines"], PaperUnit::Items),
            edition.text("K7", ["", "all", "rate"], PaperUnit::MegabytesPerSecond)
        ),
        stands: "section 6",
    }
}

/// Answers to the questions of the paper.
pub(super) fn answers(found: &Reproduced<'_>, edition: &PublishedPaper) -> Vec<PaperAnswer> {
    let each = best(found);
    let takes = |detector: &str| {
        let [lowest, _, highest] = each?;
        let [rate, most, most_with] = needed(detector, lowest)?;
        let [_, least, least_with] = needed(detector, highest)?;
        let range = |least: f64, most: f64| match least < most {
            true => format!("{least:.0} to {most:.0}"),
            false => format!("{most:.0}"),
        };
        Some(format!(
            "{detector} at {:.0} MB/s requires {}, with headroom {}",
            rate / MB,
            range(least, most),
            range(least_with, most_with)
        ))
    };
    let of_all = |detectors: &[&str]| {
        let all: Vec<String> = detectors.iter().filter_map(|detector| takes(detector)).collect();
        if all.is_empty() { NOT_MEASURED.to_owned() } else { format!("{}.", all.join("; ")) }
    };
    let rate = each.map_or_else(String::new, |[lowest, rate, highest]| {
        let range = match lowest < highest {
            true => format!("{:.0} to {:.0}", lowest / MB, highest / MB),
            false => "one run".to_owned(),
        };
        format!("One machine reaches {:.0} MB/s ({range}). ", rate / MB)
    });
    vec![
        PaperAnswer {
            question: hosts(edition).question,
            published: hosts(edition).published,
            here: format!("{rate}{}", of_all(&DETECTORS[..1])),
        },
        PaperAnswer {
            question: "How many for a current detector?".into(),
            published: "Not covered.".into(),
            here: of_all(&DETECTORS[1..]),
        },
    ]
}
