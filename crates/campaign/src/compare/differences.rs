//! Differences between systems, by axes that a user can declare.
use std::collections::BTreeMap;

use keepup_error::Cause;
use keepup_measure::environment::differences;
use keepup_results::ComparedDifference;
use serde_json::Value;

use super::systems::System;

/// Axis of the machine in the environment record.
const MACHINE: &str = "machine";
/// Axis of the measured object: volumes, a server, a register target.
const PLACE: &str = "place";
const LOAD: &str = "load";
const KEEPUP: &str = "keepup";
/// Axes that a different machine implies.
const OF_A_MACHINE: [&str; 4] = [MACHINE, "kernel", "network", PLACE];

/// Differences of each system from the first one. Renames different places to those of the baseline, in
/// order, so that their figures are compared.
pub(super) fn of(
    systems: &mut [System],
    declared: &[String],
    notes: &mut Vec<String>,
) -> Vec<ComparedDifference> {
    let place_axis = axis_of_places(systems);
    let Some((first, others)) = systems.split_first_mut() else { return Vec::new() };
    let mut found = Vec::new();
    for system in others {
        let mut add = |axis: String, item: String, baseline: String, value: String| {
            let is_place = axis == place_axis && declares(declared, PLACE);
            let is_declared = is_place || declares(declared, &axis);
            let system = system.name.clone();
            found.push(ComparedDifference { system, axis, is_declared, item, baseline, value });
        };
        for (item, baseline, value) in places(first, system) {
            add(place_axis.clone(), item, baseline, value);
        }
        for difference in differences(&first.environment, &system.environment) {
            if difference.lasting {
                let axis = axis_of(&difference.item);
                add(axis, difference.item, difference.first, difference.second);
            }
        }
        for difference in differences(&first.plan, &system.plan) {
            let axis = setting_of(&difference.item);
            add(axis, difference.item, difference.first, difference.second);
        }
        if first.loads != system.loads {
            let text = |loads: &[String]| if loads.is_empty() { "none".into() } else { loads.join(", ") };
            add(LOAD.to_owned(), LOAD.to_owned(), text(&first.loads), text(&system.loads));
        }
        rename(first, system, notes);
    }
    // Systems that are places of one result have no other place.
    if first.place.is_some() {
        first.figures.iter_mut().for_each(|figure| figure.place.clear());
    }
    found
}

/// Reason for not ranking if there are undeclared differences. Without a declaration, one axis may differ.
pub(super) fn refusal(differences: &[ComparedDifference], declared: &[String]) -> Option<String> {
    let mut axes: Vec<&str> =
        differences.iter().filter(|d| !d.is_declared).map(|d| d.axis.as_str()).collect();
    axes.sort_unstable();
    axes.dedup();
    let most = usize::from(declared.is_empty());
    if axes.len() <= most {
        return None;
    }
    let flags: Vec<String> = axes.iter().map(|axis| format!("--axis {axis}")).collect();
    let what = format!(
        "the systems differ in {}{}, so a ratio cannot be attributed to one of them",
        axes.join(" and in "),
        if declared.is_empty() { "" } else { ", in addition to the declared axes" },
    );
    let hint =
        format!("declare what is compared with {}, or rank nevertheless with --anyway", flags.join(" "));
    // A result stores a single text.
    Some(Cause::new(what).with_hint(hint).to_text())
}

fn declares(declared: &[String], axis: &str) -> bool {
    let is_named = |name: &str| declared.iter().any(|declared| canonical(declared) == name);
    is_named(axis) || (is_named(MACHINE) && OF_A_MACHINE.contains(&axis))
}

/// Axis of an item of the environment record.
fn axis_of(item: &str) -> String {
    let part = item.split(['.', '[']).next().unwrap_or(item);
    match part {
        "volumes" => PLACE,
        "tool" => KEEPUP,
        "cpu" | "memory" => MACHINE,
        other => other,
    }
    .to_owned()
}

/// Axis of a setting: its name.
fn setting_of(item: &str) -> String {
    let mut parts = item.split('.').map(|part| part.split('[').next().unwrap_or(part));
    canonical(parts.find(|part| !part.is_empty()).unwrap_or(item)).to_owned()
}

/// Axis of a setting or of a declared name: settings that choose the place or the loads are not a second
/// difference beside these.
fn canonical(name: &str) -> &str {
    match name {
        "volume" | "volumes" | "target" => PLACE,
        "loads" => LOAD,
        other => other,
    }
}

/// Axis of the places: of cells of one campaign the axis that chooses them, whatever its name.
fn axis_of_places(systems: &[System]) -> String {
    let is_cell = |system: &System| system.place.is_none() && system.turns.is_some();
    let is_campaign = systems.iter().all(|system| is_cell(system) && system.turns == systems[0].turns);
    let coordinates = systems.first().and_then(|first| first.plan.as_object()).filter(|_| is_campaign);
    let chooses = |axis: &&String| {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let of = |system: &System| (system.plan[axis.as_str()].to_string(), system.places());
        systems.iter().map(of).all(|(value, found)| *places.entry(value).or_insert(found.clone()) == found)
    };
    let axis = coordinates.and_then(|coordinates| coordinates.keys().find(chooses));
    canonical(axis.map_or(PLACE, String::as_str)).to_owned()
}

/// Differences of the places of two systems and of their volumes.
fn places(first: &System, system: &System) -> Vec<(String, String, String)> {
    let (there, here) = match (&first.place, &system.place) {
        (Some(there), Some(here)) => (vec![there.clone()], vec![here.clone()]),
        _ => (first.places(), system.places()),
    };
    if there == here {
        return Vec::new();
    }
    let mut found = vec![(PLACE.to_owned(), there.join(", "), here.join(", "))];
    // For two places of one result, the environment record has both volumes.
    if let (Some(there), Some(here)) = (volume(first, &there), volume(system, &here)) {
        let items = differences(there, here).into_iter().filter(|d| !matches!(&d.item[..], "path"));
        let items = items.filter(|d| !d.item.starts_with("free"));
        found.extend(items.map(|d| (format!("volume.{}", d.item), d.first, d.second)));
    }
    found
}

/// Environment record of the volume, if the system is a place of a result.
fn volume<'a>(system: &'a System, places: &[String]) -> Option<&'a Value> {
    system.place.as_ref()?;
    let volumes = system.environment.get("volumes")?.as_array()?;
    volumes
        .iter()
        .find(|volume| volume.get("path").and_then(Value::as_str) == places.first().map(String::as_str))
}

/// Renames the places of a system to those of the baseline.
fn rename(first: &System, system: &mut System, notes: &mut Vec<String>) {
    if system.place.is_some() {
        system.figures.iter_mut().for_each(|figure| figure.place.clear());
        return;
    }
    let (there, here) = (first.places(), system.places());
    if there == here || here.iter().all(|place| there.contains(place)) {
        return;
    }
    if there.len() != here.len() {
        notes.push(format!(
            "{} was measured in {} places, the baseline in {}: only places with equal names are compared",
            system.name,
            here.len(),
            there.len()
        ));
        return;
    }
    if there.len() > 1 {
        let pairs: Vec<String> = here.iter().zip(&there).map(|(h, t)| format!("{h} with {t}")).collect();
        notes.push(format!("{}: places are compared in order: {}", system.name, pairs.join(", ")));
    }
    for figure in &mut system.figures {
        if let Some(n) = here.iter().position(|place| *place == figure.place) {
            figure.place.clone_from(&there[n]);
        }
    }
}
