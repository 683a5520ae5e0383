//! Whether settings can be, before anything is touched; and when a run has what it was to have.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use keepup_recording::runs::{ENTRIES_MAX, RUN_MAX, runs};
use keepup_results::live::{
    METADATA_BYTES_MAX, METADATA_KEY_BYTES_MAX, METADATA_KEYS_MAX, RunSettings, StopAfter,
};

use super::RunOffer;
use crate::RecorderError;

/// Refuses what can be seen to be wrong from the settings alone.
pub(super) fn check(settings: &RunSettings) -> Result<(), String> {
    if settings.metadata.len() > METADATA_KEYS_MAX {
        let entries = settings.metadata.len();
        return Err(format!(
            "{entries} entries of metadata are more than the {METADATA_KEYS_MAX} there may be"
        ));
    }
    for (key, value) in &settings.metadata {
        check_metadata(key, value)?;
    }
    if let Some(run) = settings.run.filter(|&run| run > RUN_MAX) {
        return Err(format!("run number {run} is beyond the highest possible, {RUN_MAX}"));
    }
    let StopAfter { events, bytes, seconds } = settings.stop;
    if events == Some(0) || bytes == Some(0) || seconds.is_some_and(|s| !s.is_finite() || s <= 0.0) {
        return Err("cannot stop a run after nothing: a limit must be above 0 and finite".into());
    }
    Ok(())
}

fn check_metadata(key: &str, value: &str) -> Result<(), String> {
    if key.is_empty() || key.len() > METADATA_KEY_BYTES_MAX || key.chars().any(char::is_control) {
        return Err(format!(
            "{key:?} cannot be a key of metadata: it must have 1 to {METADATA_KEY_BYTES_MAX} bytes, \
             all of them printable"
        ));
    }
    if value.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(format!("the metadata of {key:?} cannot be kept: it has control characters"));
    }
    if key.len() + value.len() > METADATA_BYTES_MAX {
        return Err(format!(
            "the metadata of {key:?} is too long: key and value may have {METADATA_BYTES_MAX} bytes \
             together\nhint: keep it in a file, and its name here"
        ));
    }
    Ok(())
}

/// The volumes of a run: those asked for, by exactly the path on offer; all of them when none is.
pub(super) fn volumes(settings: &RunSettings, offer: &RunOffer) -> Result<Vec<PathBuf>, String> {
    if settings.volumes.is_empty() {
        return Ok(offer.volumes.clone());
    }
    let mut seen = BTreeSet::new();
    let mut volumes = Vec::new();
    for asked in &settings.volumes {
        let offered = offer.volumes.iter().find(|volume| volume.display().to_string() == *asked);
        let Some(volume) = offered else {
            let known: Vec<String> = offer.volumes.iter().map(|v| format!("{}", v.display())).collect();
            return Err(format!(
                "cannot record to {asked:?}: it is not one of this recorder's volumes\n\
                 hint: {}",
                if known.is_empty() { "it keeps nothing".into() } else { known.join(", ") }
            ));
        };
        if !seen.insert(asked) {
            return Err(format!("volume {asked:?} is given twice"));
        }
        volumes.push(volume.clone());
    }
    Ok(volumes)
}

/// The number of a run on `volumes`: the one asked for, when it is not taken, else the next.
pub(super) fn number(asked: Option<u64>, volumes: &[PathBuf]) -> Result<u64, RecorderError> {
    let runs = runs(volumes.iter().map(PathBuf::as_path))?;
    let next = runs.next();
    match (asked, next) {
        (Some(run), next) if runs.taken.contains(&run) => {
            let next = next.map_or_else(String::new, |next| format!("; the next one is {next}"));
            let what = format!("run {run} is on the volumes already\nhint: leave the number out{next}");
            Err(RecorderError::Config { what })
        }
        (Some(run), _) => Ok(run),
        (None, Some(next)) => Ok(next),
        (None, None) => {
            let volumes: Vec<&Path> = volumes.iter().map(PathBuf::as_path).collect();
            let what = format!(
                "cannot tell the next run number: {volumes:?} have more than {ENTRIES_MAX} entries, or the \
                 highest number\nhint: give the number of the run"
            );
            Err(RecorderError::Config { what })
        }
    }
}

/// What a run ends for by itself, once it has received so much in so many seconds.
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
