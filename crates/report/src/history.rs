//! Time series of a measurement, from the samples of its event log.
//!
//! Invariants: memory use does not depend on the length of the log; downsampling keeps the minimum and the
//! maximum, so a dip of one sample stays visible; a damaged or truncated log is used up to the damage.

mod thin;

use std::collections::BTreeMap;

use keepup_results::{Event, ResultsError, TrialResult};

pub(crate) use self::thin::Thin;

/// Counters that are converted to rates, with the minimum interval in ms. Shorter intervals show only the
/// bursts of large requests and of flushes.
const COUNTERS: [(&str, u64); 5] = [
    ("due_bytes", 100),
    ("received_bytes", 100),
    ("written_bytes", 100),
    ("durable_bytes", 500),
    ("drained_bytes", 500),
];
/// Most notes kept.
const NOTES_MAX: usize = 100;
/// Most trials kept.
const TRIALS_MAX: usize = 2000;
/// Most lines kept. keepup writes a few dozen, plus one for each core.
const LINES_MAX: usize = 2048;

/// Time series, trials and notes of an event log.
#[derive(Default)]
pub struct History {
    /// Values by name, over seconds since the start. The name contains the unit.
    pub(crate) lines: BTreeMap<String, Thin>,
    /// Trials that have samples, in order.
    pub(crate) trials: Vec<TrialSpan>,
    /// Notes in the log.
    pub(crate) notes: Vec<String>,
    /// Why the log is incomplete.
    pub(crate) incomplete: Option<String>,
    is_finished: bool,
    earlier: BTreeMap<&'static str, (u64, f64)>,
    span_ms: Option<(u64, u64)>,
}

/// Start and end of a trial, seconds since the start of the measurement.
pub(crate) struct TrialSpan {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) passed: bool,
}

impl History {
    /// Reads a log up to its end or the first damage.
    pub fn read(events: impl IntoIterator<Item = Result<Event, ResultsError>>) -> Self {
        let mut history = Self::default();
        for event in events {
            match event {
                Ok(event) => history.take(event),
                Err(why) => {
                    let why = why.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    history.incomplete =
                        Some(format!("the event log is damaged; later samples are missing: {why}"));
                    break;
                }
            }
        }
        if !history.is_finished && history.incomplete.is_none() {
            history.incomplete =
                Some("the event log is truncated: the measurement did not finish".to_owned());
        }
        history
    }

    /// Creates an empty history for a log that cannot be read.
    #[must_use]
    pub fn missing(why: &str) -> Self {
        let why = why.lines().next().unwrap_or_default();
        Self {
            incomplete: Some(format!("no charts over time: the event log is missing: {why}")),
            ..Self::default()
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Sample { t_ms, values, .. } => self.sample(t_ms, values),
            Event::Trial { trial, .. } => self.trial(&trial),
            Event::Note { text, .. } if self.notes.len() < NOTES_MAX => self.notes.push(text),
            Event::Finished { .. } => self.is_finished = true,
            _ => {}
        }
    }

    fn sample(&mut self, t_ms: u64, values: BTreeMap<String, f64>) {
        self.span_ms = Some(self.span_ms.map_or((t_ms, t_ms), |(from, to)| (from.min(t_ms), to.max(t_ms))));
        if self.is_new_run(t_ms, &values) {
            self.cut();
        }
        let backlog = backlog(&values);
        for (name, value) in values.into_iter().chain(backlog) {
            match COUNTERS.into_iter().find(|(counter, _)| *counter == name) {
                Some((counter, ms_min)) => self.count(counter, ms_min, t_ms, value),
                None => self.point(name, t_ms, value),
            }
        }
    }

    /// Converts a counter to the rate since its last value.
    fn count(&mut self, counter: &'static str, ms_min: u64, t_ms: u64, value: f64) {
        let Some((earlier_ms, earlier)) = self.earlier.get(counter).copied() else {
            self.earlier.insert(counter, (t_ms, value));
            return;
        };
        let elapsed_ms = t_ms.saturating_sub(earlier_ms);
        if elapsed_ms >= ms_min {
            let rate = (value - earlier) * 1e3 / elapsed_ms as f64;
            let line = counter.replace("_bytes", "_bytes_per_second");
            self.point(line, t_ms, rate);
            self.earlier.insert(counter, (t_ms, value));
        }
    }

    /// Adds a point to a line. A log with more than `LINES_MAX` names was not written by keepup.
    fn point(&mut self, line: String, t_ms: u64, value: f64) {
        if self.lines.len() < LINES_MAX || self.lines.contains_key(&line) {
            self.lines.entry(line).or_default().push(t_ms as f64 / 1e3, value);
        }
    }

    /// Ends a trial, which owns all samples since the previous one. Counters restart at 0.
    fn trial(&mut self, trial: &TrialResult) {
        if let Some((from, to)) = self.span_ms.take().filter(|_| self.trials.len() < TRIALS_MAX) {
            self.trials.push(TrialSpan {
                from_s: from as f64 / 1e3,
                to_s: to as f64 / 1e3,
                passed: trial.passed,
            });
        }
        self.cut();
    }

    /// Whether a new run started: a counter or the time went back.
    fn is_new_run(&self, t_ms: u64, values: &BTreeMap<String, f64>) -> bool {
        self.earlier.iter().any(|(counter, (earlier_ms, earlier))| {
            t_ms < *earlier_ms || values.get(*counter).is_some_and(|value| value < earlier)
        })
    }

    /// Breaks all lines, because the next sample belongs to another run.
    fn cut(&mut self) {
        self.earlier.clear();
        self.lines.values_mut().for_each(Thin::cut);
    }

    /// A line, if it has points.
    pub(crate) fn line(&self, name: &str) -> Option<&Thin> {
        self.lines.get(name).filter(|line| !line.is_empty())
    }

    /// Load of each core, by core number.
    pub(crate) fn cores(&self) -> BTreeMap<u32, &Thin> {
        let number = |name: &str| name.strip_prefix("core_")?.strip_suffix("_busy_percent")?.parse().ok();
        self.lines.iter().filter_map(|(name, line)| Some((number(name)?, line))).collect()
    }
}

/// Bytes that are due but neither lost nor written yet: in the source, the network or the pool.
fn backlog(values: &BTreeMap<String, f64>) -> Option<(String, f64)> {
    let of = |name: &str| values.get(name).copied();
    let backlog = of("due_bytes")? - of("lost_bytes")? - of("written_bytes")?;
    Some(("backlog_bytes".to_owned(), backlog.max(0.0)))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
