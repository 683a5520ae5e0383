//! Consistency checks of a summary: a contradictory result must not be published.

use crate::summary::{
    Bottleneck, Count, DiskWear, Endurance, LedgerSummary, ResultSummary, SCHEMA_VERSION, TrialResult,
    Verdict,
};

/// Relative difference allowed between derived figures because of rounding.
const TOLERANCE: f64 = 1e-3;
/// Phases of trials without a schedule, of all versions.
const UNTHROTTLED: [&str; 3] = ["saturated", "until steady", "without disks"];

impl TrialResult {
    /// Condition that failed if the source, not the machine, was too slow.
    pub const SOURCE_FAILED: &'static str = "the source did not keep its schedule";

    /// Whether the source sent as fast as it could: `asked_bytes_per_second` is the rate that it reached.
    #[must_use]
    pub fn is_unthrottled(&self) -> bool {
        UNTHROTTLED.contains(&self.phase.as_str())
    }

    /// Whether the machine did not sustain the requested rate.
    #[must_use]
    pub fn machine_failed(&self) -> bool {
        let is_source = self.failed_condition.as_deref() == Some(Self::SOURCE_FAILED);
        !self.passed && !is_source && !self.is_unthrottled()
    }
}

impl ResultSummary {
    /// Events lost in each soak that failed by losses. A soak is cut off after its first loss, so that each
    /// is one incident.
    pub fn soak_losses(&self) -> impl Iterator<Item = u64> {
        let soaks = self.trials.iter().filter(|trial| trial.phase == "soak" && trial.machine_failed());
        soaks.map(|trial| trial.lost_events).filter(|events| *events > 0)
    }

    /// All contradictions, one sentence each; empty for a consistent summary.
    #[must_use]
    pub fn check(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.schema_version != SCHEMA_VERSION {
            found.push(format!("schema version is {}, not {SCHEMA_VERSION}", self.schema_version));
        }
        self.check_rates(&mut found);
        self.check_trials(&mut found);
        self.check_failed_above(&mut found);
        self.check_next_limit(&mut found);
        self.check_verdict(&mut found);
        self.check_soak(&mut found);
        self.check_bottleneck(&mut found);
        check_ledger(&self.ledger, self.interrupted, &mut found);
        for (index, trial) in self.trials.iter().enumerate() {
            check_trial(index + 1, trial, &mut found);
        }
        found
    }

    fn check_rates(&self, found: &mut Vec<String>) {
        let figures = [
            ("required rate", Some(self.required_bytes_per_second)),
            ("wanted headroom", Some(self.headroom_wanted)),
            ("knee", self.knee_bytes_per_second),
            ("qualified rate", self.qualified_bytes_per_second),
            ("headroom", self.headroom),
        ];
        for (name, figure) in figures {
            if let Some(value) = figure.filter(|value| !value.is_finite() || *value <= 0.0) {
                found.push(format!("{name} is {value}, not a positive number"));
            }
        }
        match (self.qualified_bytes_per_second, self.headroom) {
            (Some(qualified), Some(headroom)) => {
                let expected = qualified / self.required_bytes_per_second;
                if !near(headroom, expected) {
                    found.push(format!("headroom is {headroom}, but qualified over required is {expected}"));
                }
            }
            (None, None) => {}
            _ => found.push("headroom and qualified rate must be given together".to_owned()),
        }
        let Some(interval) = self.knee_interval else { return };
        let upper = interval.upper_bytes_per_second.unwrap_or(f64::INFINITY);
        let below_upper = |value: f64| value <= upper * (1.0 + TOLERANCE);
        let knee = self.knee_bytes_per_second;
        if !knee.is_some_and(|k| k >= interval.lower_bytes_per_second * (1.0 - TOLERANCE) && below_upper(k)) {
            found.push("the knee lies outside its interval".to_owned());
        }
        if self.qualified_bytes_per_second.is_some_and(|qualified| !below_upper(qualified)) {
            found.push("the qualified rate lies above a rate that failed".to_owned());
        }
    }

    /// A rate that held is no limit, and no limit comes after itself.
    fn check_next_limit(&self, found: &mut Vec<String>) {
        if let Some(bottleneck) = &self.bottleneck
            && bottleneck.stage != Bottleneck::NOT_RESOLVED
            && bottleneck.next.as_ref().is_some_and(|next| next.stage == bottleneck.stage)
        {
            found.push("the next limit is the bottleneck".to_owned());
        }
        let next = self.bottleneck.as_ref().and_then(|bottleneck| bottleneck.next.as_ref()?.bytes_per_second);
        if next.zip(self.qualified_bytes_per_second).is_some_and(|(next, qualified)| next < qualified) {
            found.push("the next limit is below the qualified rate".to_owned());
        }
    }

    /// The qualified rate is one that the trials show.
    fn check_trials(&self, found: &mut Vec<String>) {
        let Some(qualified) = self.qualified_bytes_per_second else { return };
        let is_it = |trial: &TrialResult| trial.passed && near(trial.asked_bytes_per_second, qualified);
        if !self.trials.iter().any(is_it) {
            found.push("the qualified rate is not among the trials that passed".to_owned());
        }
    }

    /// The lowest failed rate is the one that the trials show.
    fn check_failed_above(&self, found: &mut Vec<String>) {
        let qualified = self.qualified_bytes_per_second.unwrap_or(0.0) * (1.0 + TOLERANCE);
        let machine_failed = self.trials.iter().filter(|trial| trial.machine_failed());
        let asked =
            machine_failed.map(|trial| trial.asked_bytes_per_second).filter(|asked| *asked > qualified);
        // The trial that an interruption cut off counts for nothing.
        let lowest = asked.min_by(f64::total_cmp).filter(|_| !self.interrupted);
        let Some(failed) = &self.failed_above else {
            // Results of earlier versions name one in the interval of the knee.
            let is_named = self.knee_interval.is_some_and(|knee| knee.upper_bytes_per_second.is_some());
            if lowest.is_some() && !is_named {
                found.push("a rate failed, but none is named as the lowest".to_owned());
            }
            return;
        };
        if lowest.is_some_and(|lowest| lowest < failed.bytes_per_second * (1.0 - TOLERANCE)) {
            found.push("a lower rate failed than the lowest that is named".to_owned());
        }
        if self.qualified_bytes_per_second.is_some_and(|qualified| failed.bytes_per_second <= qualified) {
            found.push("the lowest rate that failed is not above the qualified rate".to_owned());
        }
        let is_listed = self.trials.iter().any(|trial| {
            !trial.passed
                && near(trial.asked_bytes_per_second, failed.bytes_per_second)
                && trial.lost_events == failed.lost_events
        });
        if !is_listed {
            found.push("the lowest rate that failed is not among the trials".to_owned());
        }
    }

    fn check_verdict(&self, found: &mut Vec<String>) {
        let verdict = self.verdict;
        if matches!(verdict, Verdict::Fit | Verdict::FitWithLimits) {
            if self.ledger.lost.events > 0 {
                found.push(format!("verdict is {verdict}, but {} events were lost", self.ledger.lost.events));
            }
            if self.interrupted {
                found.push(format!("verdict is {verdict}, but the measurement was interrupted"));
            }
            let qualified = self.qualified_bytes_per_second;
            if !qualified.is_some_and(|rate| rate >= self.required_bytes_per_second * (1.0 - TOLERANCE)) {
                found.push(format!("verdict is {verdict}, but the required rate was not qualified"));
            }
        }
        if verdict == Verdict::Fit
            && !self.headroom.is_some_and(|h| h >= self.headroom_wanted * (1.0 - TOLERANCE))
        {
            found.push(format!("verdict is {verdict}, but the headroom is not the one that is wanted"));
        }
        let run_and_space = self.storage.run_bytes.zip(self.storage.usable_bytes);
        if verdict == Verdict::Fit && run_and_space.is_some_and(|(run, usable)| run > usable) {
            found.push(format!("verdict is {verdict}, but the volumes do not hold one run"));
        }
        let worn = self.storage.disks.iter().find_map(DiskWear::fault);
        if let Some(worn) = worn.filter(|_| verdict == Verdict::Fit) {
            found.push(format!("verdict is {verdict}, but {worn}"));
        }
        let is_short = self.storage.endurance.as_ref().is_some_and(Endurance::is_short);
        if verdict == Verdict::Fit && is_short {
            found.push(format!("verdict is {verdict}, but the rated endurance is too small"));
        }
        if verdict != Verdict::Fit && self.verdict_reasons.is_empty() {
            found.push(format!("verdict is {verdict} without a reason"));
        }
    }

    /// The bottleneck is the stage that a counter-trial confirmed, or one that could not be tested.
    fn check_bottleneck(&self, found: &mut Vec<String>) {
        let Some(bottleneck) = &self.bottleneck else { return };
        let (stage, counters) = (&bottleneck.stage, &bottleneck.counter_trials);
        for counter in counters.iter().filter(|counter| counter.confirmed) {
            if counter.stage != *stage {
                found.push(format!(
                    "a counter-trial confirmed {}, but the bottleneck is {stage}",
                    counter.stage
                ));
            }
            if counter.pairs.is_empty() {
                found.push(format!("{} is confirmed by a counter-trial without trials", counter.stage));
            }
        }
        // Results of earlier versions have no counter-trials.
        let is_open = stage == Bottleneck::NOT_RESOLVED || counters.is_empty() || bottleneck.is_confirmed();
        let is_untested = counters.iter().any(|counter| counter.stage == *stage && counter.not_run.is_some());
        if !is_open && !is_untested {
            found.push(format!("the bottleneck is {stage}, which no counter-trial confirmed"));
        }
    }

    fn check_soak(&self, found: &mut Vec<String>) {
        if self.soak.is_some() != self.qualified_bytes_per_second.is_some() {
            found.push("a soak that held and a qualified rate must be given together".to_owned());
        }
        let Some(soak) = &self.soak else { return };
        if soak.passes == 0 {
            found.push("the soak held, but has no pass".to_owned());
            return;
        }
        let expected = 3.0 * f64::from(soak.failed + 1) / soak.exposed();
        if !near(soak.upper_bound_loss_per_second, expected) {
            let given = soak.upper_bound_loss_per_second;
            found.push(format!(
                "upper bound of loss is {given} per second, but 3 (failed + 1) / soak time is {expected}"
            ));
        }
    }
}

fn check_ledger(ledger: &LedgerSummary, interrupted: bool, found: &mut Vec<String>) {
    let mut descends = |earlier: (&str, Count), later: (&str, Count)| {
        if later.1.events > earlier.1.events || later.1.bytes > earlier.1.bytes {
            found.push(format!("ledger: more {} than {}", later.0, earlier.0));
        }
    };
    let durable = ("durable", ledger.durable);
    descends(("sent", ledger.sent), ("received", ledger.received));
    descends(("received", ledger.received), ("written", ledger.written));
    descends(("written", ledger.written), durable);
    let lies = ("on the volumes", ledger.on_volumes());
    if let Some(verified) = ledger.verified {
        descends(lies, ("verified", verified));
    }
    if let Some(drained) = ledger.drained {
        descends(lies, ("drained", drained));
    }
    descends(("lost", ledger.lost), ("lost at source", ledger.lost_at_source));
    let by_cause = ledger.lost_by_cause.values().fold(0u64, |sum, count| sum.saturating_add(count.events));
    if by_cause != ledger.lost.events {
        found.push(format!("ledger: {} events lost, but {by_cause} by cause", ledger.lost.events));
    }
    let due = ledger.sent.events.saturating_add(ledger.lost_at_source.events);
    let accounted = ledger.durable.events.saturating_add(ledger.lost.events);
    // An interrupted run leaves events in flight, neither durable nor lost.
    if accounted > due || (accounted < due && !interrupted) {
        found.push(format!("ledger: {due} events were due, but {accounted} are durable or lost"));
    }
}

fn check_trial(number: usize, trial: &TrialResult, found: &mut Vec<String>) {
    if trial.passed {
        if trial.failed_condition.is_some() {
            found.push(format!("trial {number} passed, but names a condition that failed"));
        }
        if trial.lost_events > 0 || trial.backlog_growing {
            found.push(format!("trial {number} passed, but lost events or had a growing backlog"));
        }
    } else if trial.failed_condition.is_none() {
        found.push(format!("trial {number} failed, but does not say which condition"));
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
