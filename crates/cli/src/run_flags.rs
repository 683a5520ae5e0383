//! Flags that say what a run is: its number, what it carries along, when it ends by itself.
use std::collections::BTreeMap;

use keepup_plan::units::{Bytes, Span};
use keepup_results::live::{RunSettings, StopAfter};

use crate::exit::UsageError;

/// Flags of `record` and of `ctl configure`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunFlags {
    /// Run number [default: one more than the highest on the volumes]
    #[arg(long, value_name = "N")]
    run: Option<u64>,
    /// What the recording carries along, as in "sample=quartz"; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = entry)]
    meta: Vec<(String, String)>,
    /// End by itself after "1000000 events", "500 GB" or "2 h"; several: at the first that is reached
    ///
    /// It is looked at twenty times a second: what arrives until the next look is recorded too.
    #[arg(long, value_name = "LIMIT", value_parser = limit)]
    stop_after: Vec<Limit>,
}

/// One end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Events(u64),
    Bytes(u64),
    Seconds(f64),
}

impl RunFlags {
    /// Whether something is to stand in the recording.
    pub(crate) fn is_about_the_recording(&self) -> bool {
        self.run.is_some() || !self.meta.is_empty()
    }

    /// As settings of a run. Refuses what is said twice.
    pub(crate) fn settings(&self) -> Result<RunSettings, UsageError> {
        let mut metadata = BTreeMap::new();
        for (key, value) in &self.meta {
            if metadata.insert(key.clone(), value.clone()).is_some() {
                return Err(UsageError::new(format!("--meta {key:?} is given twice")));
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
                return Err(UsageError::new("--stop-after is given twice for the same quantity"));
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
        Limit::Events(0) | Limit::Bytes(0) | Limit::Seconds(0.0) => {
            Err(format!("{text:?} is nothing at all"))
        }
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
        Err(_) => Err(format!("{text:?} is none of \"1000000 events\", \"500 GB\" and \"2 h\"")),
    }
}

#[cfg(test)]
#[path = "run_flags_tests.rs"]
mod tests;
