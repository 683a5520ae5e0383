//! Conversion of older summaries to the current version, step by step.
//!
//! A step adds new fields as "none" or "not measured"; it never invents a figure.
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::campaign::CampaignSummary;
use crate::compare::COMPARE_SCHEMA_VERSION;
use crate::disk::DiskSummary;
use crate::error::ResultsError;
use crate::event::Event;
use crate::fleet_qualify::FleetQualifySummary;
use crate::head::Kind;
use crate::net::NetSummary;
use crate::predict::PredictSummary;
use crate::record::RecordSummary;
use crate::register::RegisterSummary;
use crate::replay::ReplaySummary;
use crate::soak::SoakSummary;
use crate::summary::SCHEMA_VERSION;
use crate::test::TestSummary;

type Fields = Map<String, Value>;

/// Version of a kind that a step converts to the next.
struct Step {
    kind: Kind,
    from: u64,
    change: fn(&mut Fields),
}

const STEPS: &[Step] = &[
    Step { kind: Kind::Qualify, from: 1, change: loads_beside_trials },
    Step { kind: Kind::Disk, from: 1, change: several_volumes },
    Step { kind: Kind::Disk, from: 2, change: loads_beside_phases },
    // Kind and identity are added by `update` from the events, or derived from the fields.
    Step { kind: Kind::Disk, from: 3, change: |_| {} },
    Step { kind: Kind::Net, from: 1, change: |_| {} },
    Step { kind: Kind::Register, from: 1, change: |_| {} },
    Step { kind: Kind::Replay, from: 1, change: |_| {} },
    Step { kind: Kind::Soak, from: 1, change: no_loads },
    Step { kind: Kind::Soak, from: 2, change: soak_by_name },
    Step { kind: Kind::Compare, from: 1, change: no_ratio_of_too_few },
];

/// All kinds.
#[cfg(test)]
pub(crate) const ALL: [Kind; 11] = [
    Kind::Qualify,
    Kind::QualifyFleet,
    Kind::Disk,
    Kind::Net,
    Kind::Register,
    Kind::Replay,
    Kind::Record,
    Kind::Soak,
    Kind::Campaign,
    Kind::Compare,
    Kind::Predict,
];

/// Current version of a kind.
pub(crate) fn current(kind: Kind) -> u64 {
    u64::from(match kind {
        Kind::Qualify => SCHEMA_VERSION,
        Kind::QualifyFleet => FleetQualifySummary::SCHEMA_VERSION,
        Kind::Disk => DiskSummary::SCHEMA_VERSION,
        Kind::Net => NetSummary::SCHEMA_VERSION,
        Kind::Register => RegisterSummary::SCHEMA_VERSION,
        Kind::Replay => ReplaySummary::SCHEMA_VERSION,
        Kind::Record => RecordSummary::SCHEMA_VERSION,
        Kind::Soak => SoakSummary::SCHEMA_VERSION,
        Kind::Campaign => CampaignSummary::SCHEMA_VERSION,
        Kind::Compare => COMPARE_SCHEMA_VERSION,
        Kind::Predict => PredictSummary::SCHEMA_VERSION,
    })
}

/// Checks that a version of a kind can be converted to the current one.
///
/// # Errors
/// It is newer, or never existed.
pub(crate) fn known(kind: Kind, version: u64, path: &Path) -> Result<(), ResultsError> {
    match (1..=current(kind)).contains(&version) {
        true => Ok(()),
        false => Err(ResultsError::SchemaVersion { path: path.to_path_buf(), found: version }),
    }
}

/// Converts a summary to the current version and returns its kind. `started` is its first event, if
/// any.
///
/// # Errors
/// It is not a summary, or of an unknown version.
pub(crate) fn update(value: &mut Value, path: &Path, started: Option<&Event>) -> Result<Kind, ResultsError> {
    let foreign = || ResultsError::NotASummary { path: path.to_path_buf() };
    let fields = value.as_object_mut().ok_or_else(foreign)?;
    let mut version = fields.get("schema_version").and_then(Value::as_u64).ok_or_else(foreign)?;
    let kind = kind_of(fields, started).ok_or_else(|| match fields.get("kind") {
        // A kind known only to newer versions.
        Some(Value::String(_)) => ResultsError::SchemaVersion { path: path.to_path_buf(), found: version },
        _ => foreign(),
    })?;
    known(kind, version, path)?;
    while version < current(kind) {
        if let Some(step) = STEPS.iter().find(|step| step.kind == kind && step.from == version) {
            (step.change)(fields);
        }
        version += 1;
    }
    fields.insert("schema_version".into(), json!(version));
    fields.entry("kind").or_insert_with(|| json!(kind));
    let id = match started {
        Some(Event::Started { id, .. }) => id.as_str(),
        _ => "",
    };
    // Comparisons have none.
    if kind != Kind::Compare {
        fields.entry("id").or_insert_with(|| json!(id));
    }
    Ok(kind)
}

/// Kind of a summary: from the summary itself, its events, or its fields.
fn kind_of(fields: &Fields, started: Option<&Event>) -> Option<Kind> {
    if let Some(kind) = fields.get("kind") {
        return serde_json::from_value(kind.clone()).ok();
    }
    if let Some(Event::Started { kind, .. }) = started {
        return Some(*kind);
    }
    const TOLD_BY: [(&str, Kind); 5] = [
        ("digests", Kind::Soak),
        ("break_evens", Kind::Register),
        ("passes", Kind::Replay),
        ("finding", Kind::Net),
        ("runs", Kind::Disk),
    ];
    TOLD_BY.iter().find(|(field, _)| fields.contains_key(*field)).map(|(_, kind)| *kind)
}

/// All objects in a list field.
fn each<'a>(fields: &'a mut Fields, list: &str) -> impl Iterator<Item = &'a mut Fields> {
    let list = fields.get_mut(list).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn no_loads(fields: &mut Fields) {
    fields.entry("loads").or_insert_with(|| json!([]));
}

fn loads_beside_trials(fields: &mut Fields) {
    no_loads(fields);
    for trial in each(fields, "trials") {
        trial.entry("load_rates").or_insert_with(|| json!([]));
    }
}

fn soak_by_name(fields: &mut Fields) {
    fields.entry("workload").or_insert_with(|| json!("soak"));
}

/// A run used one volume, and its phases had a single part.
fn several_volumes(fields: &mut Fields) {
    for run in each(fields, "runs") {
        if let Some(volume) = run.remove("volume") {
            run.insert("volumes".into(), json!([volume]));
        }
        run.entry("finding").or_insert(Value::Null);
        run.entry("skipped").or_insert_with(|| json!([]));
        for phase in each(run, "phases") {
            phase.entry("parts").or_insert_with(|| json!([]));
        }
    }
}

/// There were no loads; the start of a phase matters only with loads, so its earliest possible
/// start is used: the end of the previous phases.
fn loads_beside_phases(fields: &mut Fields) {
    for run in each(fields, "runs") {
        no_loads(run);
        let mut seconds = 0.0;
        for phase in each(run, "phases") {
            phase.entry("begin_seconds").or_insert_with(|| json!(seconds));
            phase.entry("load_rates").or_insert_with(|| json!([]));
            seconds += phase.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
        }
    }
}

/// Too few values had a ratio and an index. Published values counted as too few.
fn no_ratio_of_too_few(fields: &mut Fields) {
    let is_published: Vec<bool> =
        each(fields, "systems").map(|system| system.get("published").is_some_and(Value::is_string)).collect();
    let mut is_judged = vec![false; is_published.len()];
    let change_is = |beside: &Fields, name: &str| beside.get("change").is_some_and(|change| change == name);
    for row in each(fields, "rows") {
        let cells = row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten();
        for ((cell, is_published), is_judged) in cells.zip(&is_published).zip(&mut is_judged) {
            let has_few = cell.get("values").and_then(Value::as_array).is_some_and(|values| values.len() < 5);
            let Some(beside) = cell.get_mut("beside").and_then(Value::as_object_mut) else { continue };
            let is_too_few = change_is(beside, "too_few") || (has_few && change_is(beside, "not_judged"));
            if *is_published {
                beside.insert("change".into(), json!("not_judged"));
            } else if is_too_few {
                beside.insert("change".into(), json!("too_few"));
                for name in ["ratio", "lower", "upper", "chance", "effect"] {
                    beside.insert(name.into(), Value::Null);
                }
            }
            *is_judged |= *is_published || !(is_too_few || change_is(beside, "not_judged"));
        }
    }
    // The baseline keeps its index of 1.
    for (index, _) in each(fields, "indices").zip(is_judged).skip(1).filter(|(_, is_judged)| !is_judged) {
        for name in ["index", "lower", "upper"] {
            index.insert(name.into(), Value::Null);
        }
    }
}
