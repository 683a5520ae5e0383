//! What went on while it was measured: the samples of an event log as lines through time.
//!
//! Invariants: a log of any length needs the same memory; the lowest and the highest value of every stretch
//! are kept, so that a dip of one sample is still seen; a log that is damaged or torn is used up to there.

mod thin;

use std::collections::BTreeMap;

use keepup_results::{Event, ResultsError, TrialResult};

pub(crate) use self::thin::Thin;

/// Counters that only rise while a trial runs, and over how long, in ms, their growth is told as a rate at
/// least: requests are large and end in bursts, and data becomes durable from flush to flush.
const COUNTERS: [(&str, u64); 5] = [
    ("due_bytes", 100),
    ("received_bytes", 100),
    ("written_bytes", 100),
    ("durable_bytes", 500),
    ("drained_bytes", 500),
];
/// Notes that are kept.
const NOTES_MAX: usize = 100;
/// Trials whose place in time is kept.
const TRIALS_MAX: usize = 2000;
/// Lines that are kept, each for a name of its own: keepup writes a few dozen, and one for each core.
const LINES_MAX: usize = 2048;

/// What an event log says.
#[derive(Default)]
pub struct History {
    /// Lines by name, seconds since the measurement began against the unit in the name.
    pub(crate) lines: BTreeMap<String, Thin>,
    /// Trials that have samples, in order.
    pub(crate) trials: Vec<TrialSpan>,
    /// Notes that were made.
    pub(crate) notes: Vec<String>,
    /// Why it is not whole, if it is not.
    pub(crate) trouble: Option<String>,
    is_finished: bool,
    earlier: BTreeMap<&'static str, (u64, f64)>,
    span_ms: Option<(u64, u64)>,
}

/// When a trial ran, in seconds since the measurement began.
pub(crate) struct TrialSpan {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) passed: bool,
}

impl History {
    /// Reads a log to its end, or to where it is damaged.
    pub fn read(events: impl IntoIterator<Item = Result<Event, ResultsError>>) -> Self {
        let mut history = Self::default();
        for event in events {
            match event {
                Ok(event) => history.take(event),
                Err(why) => {
                    let why = why.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    history.trouble =
                        Some(format!("the event log is damaged, what follows is missing: {why}"));
                    break;
                }
            }
        }
        if !history.is_finished && history.trouble.is_none() {
            history.trouble = Some("the event log has no end: the measurement was cut off there".to_owned());
        }
        history
    }

    /// A measurement whose log cannot be read at all.
    #[must_use]
    pub fn missing(why: &str) -> Self {
        let why = why.lines().next().unwrap_or_default();
        Self {
            trouble: Some(format!("there is no event log, so nothing through time: {why}")),
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
        if self.began_anew(t_ms, &values) {
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

    /// A counter becomes the rate since its last value.
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

    /// Adds to a line. A log with more names than lines are kept for is none of keepup's.
    fn point(&mut self, line: String, t_ms: u64, value: f64) {
        if self.lines.len() < LINES_MAX || self.lines.contains_key(&line) {
            self.lines.entry(line).or_default().push(t_ms as f64 / 1e3, value);
        }
    }

    /// A trial ended: its samples are those since the one before. The counters of the next begin at nothing.
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

    /// Whether another run began: a counter fell, or time did.
    fn began_anew(&self, t_ms: u64, values: &BTreeMap<String, f64>) -> bool {
        self.earlier.iter().any(|(counter, (earlier_ms, earlier))| {
            t_ms < *earlier_ms || values.get(*counter).is_some_and(|value| value < earlier)
        })
    }

    /// Breaks all lines: what follows belongs to another run.
    fn cut(&mut self) {
        self.earlier.clear();
        self.lines.values_mut().for_each(Thin::cut);
    }

    /// A line, if there is anything on it.
    pub(crate) fn line(&self, name: &str) -> Option<&Thin> {
        self.lines.get(name).filter(|line| !line.is_empty())
    }

    /// The lines of cores, by number.
    pub(crate) fn cores(&self) -> BTreeMap<u32, &Thin> {
        let number = |name: &str| name.strip_prefix("core_")?.strip_suffix("_busy_percent")?.parse().ok();
        self.lines.iter().filter_map(|(name, line)| Some((number(name)?, line))).collect()
    }
}

/// What is due and neither lost nor written: in the source, the network or the pool.
fn backlog(values: &BTreeMap<String, f64>) -> Option<(String, f64)> {
    let of = |name: &str| values.get(name).copied();
    let backlog = of("due_bytes")? - of("lost_bytes")? - of("written_bytes")?;
    Some(("backlog_bytes".to_owned(), backlog.max(0.0)))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
