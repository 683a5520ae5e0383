//! Flags of a run: number, metadata, and conditions to stop.
use std::collections::BTreeMap;

use keepup_plan::units::{Bytes, Span};
use keepup_results::live::{RunSettings, StopAfter};

use crate::exit::UsageError;

/// Flags of `record` and of `ctl configure`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunFlags {
    /// Run number [default: the highest on the volumes plus 1]
    #[arg(long, value_name = "N")]
    run: Option<u64>,
    /// Metadata for the recording, such as sample=quartz; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = entry)]
    meta: Vec<(String, String)>,
    /// Stop after "1000000 events", "500 GB" or "2 h"; repeatable
    ///
    /// The first limit reached ends the run. Limits are checked every 50 ms; events that arrive before the
    /// next check are recorded too.
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    stop_after: Vec<Limit>,
}

/// Condition to stop a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Events(u64),
    Bytes(u64),
    Seconds(f64),
}

impl RunFlags {
    /// Whether a flag sets a property of the recording.
    pub(crate) fn is_about_the_recording(&self) -> bool {
        self.run.is_some() || !self.meta.is_empty()
    }

    /// Settings of a run. A value given twice is an error.
    pub(crate) fn settings(&self) -> Result<RunSettings, UsageError> {
        let mut metadata = BTreeMap::new();
        for (key, value) in &self.meta {
            if metadata.insert(key.clone(), value.clone()).is_some() {
                return Err(UsageError::new(format!("cannot use --meta {key:?} twice")));
            }
        }
        let mut stop = StopAfter::default();
        for limit in &self.stop_after {
            let is_second = match *limit {
                Limit::Events(events) => stop.events.replace(events).is_some(),
                Limit::Bytes(bytes) => stop.bytes.replace(bytes).is_some(),
                Limit::Seconds(seconds) => stop.seconds.replace(seconds).is_some(),
            };
            if is_second {
                return Err(UsageError::new("cannot use --stop-after twice for the same quantity"));
            }
        }
        Ok(RunSettings { run: self.run, metadata, stop, ..RunSettings::default() })
    }
}

fn entry(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not KEY=VALUE")),
    }
}

fn limit(text: &str) -> Result<Limit, String> {
    let some = |limit: Limit| match limit {
        Limit::Events(0) | Limit::Bytes(0) | Limit::Seconds(0.0) => Err(format!("{text:?} must be above 0")),
        _ => Ok(limit),
    };
    let number = text.strip_suffix("events").or_else(|| text.strip_suffix("event"));
    if let Some(events) = number.and_then(|number| number.trim_end().parse().ok()) {
        return some(Limit::Events(events));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return some(Limit::Bytes(bytes.0));
    }
    match text.parse::<Span>() {
        Ok(span) => some(Limit::Seconds(span.0.as_secs_f64())),
        Err(_) => Err(format!("{text:?} is not a limit such as \"1000000 events\", \"500 GB\" or \"2 h\"")),
    }
}

#[cfg(test)]
#[path = "run_flags_tests.rs"]
mod tests;
