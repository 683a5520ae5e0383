//! Validation of a run's settings before anything is touched, and its stop limits.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use keepup_error::Cause;
use keepup_recording::runs::{ENTRIES_MAX, RUN_MAX, runs};
use keepup_results::live::{
    METADATA_BYTES_MAX, METADATA_KEY_BYTES_MAX, METADATA_KEYS_MAX, RunSettings, StopAfter,
};

use super::RunOffer;
use crate::RecorderError;

/// Refuses settings that are invalid by themselves.
pub(super) fn check(settings: &RunSettings) -> Result<(), Cause> {
    if settings.metadata.len() > METADATA_KEYS_MAX {
        let entries = settings.metadata.len();
        return Err(format!(
            "cannot store {entries} metadata entries: at most {METADATA_KEYS_MAX} are possible"
        )
        .into());
    }
    for (key, value) in &settings.metadata {
        check_metadata(key, value)?;
    }
    if let Some(run) = settings.run.filter(|&run| run > RUN_MAX) {
        return Err(format!("cannot use run number {run}: the highest is {RUN_MAX}").into());
    }
    let StopAfter { events, bytes, seconds } = settings.stop;
    if events == Some(0) || bytes == Some(0) || seconds.is_some_and(|s| !s.is_finite() || s <= 0.0) {
        return Err("a stop limit must be above 0 and finite".into());
    }
    Ok(())
}

fn check_metadata(key: &str, value: &str) -> Result<(), Cause> {
    if key.is_empty() || key.len() > METADATA_KEY_BYTES_MAX || key.chars().any(char::is_control) {
        return Err(format!(
            "cannot use {key:?} as a key of metadata: it must have 1 to {METADATA_KEY_BYTES_MAX} bytes, \
             all of them printable"
        )
        .into());
    }
    if value.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        let what = format!("cannot keep the metadata of {key:?}: it has control characters");
        return Err(Cause::new(what).with_hint("visible characters, line breaks and tabs"));
    }
    if key.len() + value.len() > METADATA_BYTES_MAX {
        let what = format!(
            "cannot keep the metadata of {key:?}: key and value may have {METADATA_BYTES_MAX} bytes together"
        );
        return Err(Cause::new(what).with_hint("keep it in a file, and its name here"));
    }
    Ok(())
}

/// Volumes of a run: those requested, spelled exactly as on offer; all of them when none is
/// requested.
pub(super) fn volumes(settings: &RunSettings, offer: &RunOffer) -> Result<Vec<PathBuf>, Cause> {
    if settings.volumes.is_empty() {
        return Ok(offer.volumes.clone());
    }
    let mut seen = BTreeSet::new();
    let mut volumes = Vec::new();
    for asked in &settings.volumes {
        let offered = offer.volumes.iter().find(|volume| volume.display().to_string() == *asked);
        let Some(volume) = offered else {
            let known: Vec<String> = offer.volumes.iter().map(|v| format!("{}", v.display())).collect();
            let hint = if known.is_empty() { "it has no volumes".into() } else { known.join(", ") };
            let what = format!("cannot record to {asked:?}: it is not one of this recorder's volumes");
            return Err(Cause::new(what).with_hint(hint));
        };
        if !seen.insert(asked) {
            return Err(format!("cannot record to volume {asked:?}: it is given twice").into());
        }
        volumes.push(volume.clone());
    }
    Ok(volumes)
}

/// Number of a run on `volumes`: the requested one, unless it is taken, or the next one.
pub(super) fn number(asked: Option<u64>, volumes: &[PathBuf]) -> Result<u64, RecorderError> {
    let runs = runs(volumes.iter().map(PathBuf::as_path))?;
    let next = runs.next();
    match (asked, next) {
        (Some(run), next) if runs.taken.contains(&run) => {
            let next = next.map_or_else(String::new, |next| format!("; the next one is {next}"));
            let what = Cause::new(format!("cannot use the number: run {run} is on the volumes already"));
            Err(RecorderError::Config { what: what.with_hint(format!("leave the number out{next}")) })
        }
        (Some(run), _) => Ok(run),
        (None, Some(next)) => Ok(next),
        (None, None) => {
            let volumes: Vec<&Path> = volumes.iter().map(PathBuf::as_path).collect();
            let what = format!(
                "cannot tell the next run number: {volumes:?} have more than {ENTRIES_MAX} entries, or the \
                 highest number"
            );
            Err(RecorderError::Config { what: Cause::new(what).with_hint("give the number of the run") })
        }
    }
}

/// The limit that a run has reached, if any, after this many events, bytes and seconds.
pub(super) fn reached(stop: &StopAfter, events: u64, bytes: u64, seconds: f64) -> Option<String> {
    if let Some(limit) = stop.events.filter(|&limit| events >= limit) {
        return Some(format!("{limit} events"));
    }
    if let Some(limit) = stop.bytes.filter(|&limit| bytes >= limit) {
        return Some(format!("{limit} bytes"));
    }
    let limit = stop.seconds.filter(|&limit| seconds >= limit)?;
    Some(format!("{limit} s"))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
