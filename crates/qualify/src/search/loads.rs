//! Classification of each load by the trials so far: lower bound, upper bound, or undecided.
//!
//! The rules are those of MLRsearch (draft-ietf-bmwg-mlrsearch-15, "load classification" and "relevant
//! bounds"), with one addition: a trial whose backlog grows is bad whatever its loss, because a large
//! buffer hides overload until it is full.

use std::collections::BTreeMap;

/// Requirements on a load in one round of the search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Target {
    /// Share of events that may be lost.
    pub(super) loss_ratio: f64,
    /// Share of the trial time that may be bad.
    pub(super) exceed_ratio: f64,
    /// Length of a full trial, seconds.
    pub(super) trial_s: f64,
    /// Trial time a load is worth, seconds.
    pub(super) sum_s: f64,
    /// Interval that settles the round, grid steps.
    pub(super) width: usize,
}

/// Result of one trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finding {
    /// Time the trial counts for, seconds.
    pub(super) duration_s: f64,
    /// Share of the offered events that was lost.
    pub(super) loss_ratio: f64,
    /// Bad whatever the loss: the backlog grew, or another condition failed.
    pub(super) bad_anyway: bool,
}

impl Finding {
    /// Whether the trial is bad for a goal that allows `loss_ratio`.
    pub(super) fn is_bad(&self, loss_ratio: f64) -> bool {
        self.bad_anyway || self.loss_ratio > loss_ratio
    }
}

/// Classification of one load for one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Holds, even if all missing time turned bad.
    Lower,
    /// Does not hold, even if all missing time turned good.
    Upper,
    /// Must be measured again.
    Undecided,
}

/// Relevant bounds: the smallest load that is an upper bound and the largest lower bound below it.
/// Good results above a bad load count as flukes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Largest lower bound below `upper`.
    pub(super) lower: Option<usize>,
    /// Smallest upper bound.
    pub(super) upper: Option<usize>,
}

/// All findings, by load.
#[derive(Debug, Clone, Default)]
pub(super) struct Loads {
    findings: BTreeMap<usize, Vec<Finding>>,
}

impl Loads {
    /// Adds the result of a trial at `load`.
    pub(super) fn add(&mut self, load: usize, finding: Finding) {
        self.findings.entry(load).or_default().push(finding);
    }

    /// Relevant bounds for `target`.
    pub(super) fn bounds(&self, target: &Target) -> Bounds {
        let mut bounds = Bounds::default();
        for (load, class) in self.classes(target) {
            match class {
                Class::Lower => bounds.lower = Some(load),
                Class::Upper => {
                    bounds.upper = Some(load);
                    break;
                }
                Class::Undecided => {}
            }
        }
        bounds
    }

    /// Every measured load with its class for `target`, lowest load first.
    pub(super) fn classes<'a>(&'a self, target: &'a Target) -> impl Iterator<Item = (usize, Class)> + 'a {
        self.findings.iter().map(|(&load, findings)| (load, classify(findings, target)))
    }

    /// Lowest load with a trial that was bad for a lossless goal.
    pub(super) fn lowest_bad(&self) -> Option<usize> {
        self.findings
            .iter()
            .find(|(_, findings)| findings.iter().any(|f| f.is_bad(0.0)))
            .map(|(&load, _)| load)
    }
}

/// Classifies one load. With GL, BL (GS, BS) the seconds of good and bad full-length (shorter) trials:
/// `excess = max(0, BS - GS * E / (1 - E))`, `bad = BL + excess`, `whole = max(GL + bad, S)`;
/// lower bound if `whole - GL <= whole * E`, upper bound if `bad > whole * E`.
fn classify(findings: &[Finding], target: &Target) -> Class {
    let exceed = target.exceed_ratio;
    let (mut good_full, mut bad_full, mut good_short, mut bad_short) = (0.0, 0.0, 0.0, 0.0);
    for finding in findings {
        let full = finding.duration_s >= target.trial_s * 0.999;
        let sum = match (full, finding.is_bad(target.loss_ratio)) {
            (true, false) => &mut good_full,
            (true, true) => &mut bad_full,
            (false, false) => &mut good_short,
            (false, true) => &mut bad_short,
        };
        *sum += finding.duration_s;
    }
    let excess = f64::max(0.0, bad_short - good_short * exceed / (1.0 - exceed));
    let bad = bad_full + excess;
    let whole = f64::max(good_full + bad, target.sum_s);
    // Sums of equal trials must compare as equal to their multiple.
    let limit = whole * exceed;
    let rounding = whole * 1e-9;
    if whole - good_full <= limit + rounding {
        Class::Lower
    } else if bad > limit + rounding {
        Class::Upper
    } else {
        Class::Undecided
    }
}

#[cfg(test)]
#[path = "loads_tests.rs"]
mod tests;
