//! Rules on crate dependencies, from the cargo metadata.
//!
//! The order is that of the design table: a crate may use those above it, never those below.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::violation::Violation;

/// Crates in the order of the design table.
const ORDER: [&str; 27] = [
    "error",
    "plan",
    "measure",
    "sys",
    "results",
    "peer",
    "simplon",
    "stream",
    "sources",
    "recording",
    "recorder",
    "trace",
    "registers",
    "workload",
    "soak",
    "replay",
    "qualify",
    "model",
    "campaign",
    "reproduce",
    "report",
    "live",
    "catalog",
    "archive",
    "membership",
    "fleet",
    "cli",
];
/// Crate for tests only: tests of any crate may use it, and it may use any crate except `cli`.
const TESTKIT: &str = "testkit";
/// Crates that only read what others produce, with the crates that they may use: `report` never uses those
/// that measure or record.
const READERS: [(&str, &[&str]); 2] = [
    ("report", &["error", "plan", "measure", "results", "stream", "recording", "trace", "model", "campaign"]),
    ("live", &["error", "results", "measure", "peer"]),
];
/// Only crates that may use the asynchronous runtime.
const ASYNCHRONOUS: [&str; 3] = ["live", "archive", "fleet"];
const PREFIX: &str = "keepup-";

pub(crate) fn check(metadata: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    let members: BTreeSet<&str> = array(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    for package in array(&metadata["packages"]).filter(|package| members.contains(text(&package["id"]))) {
        let Some(folder) = text(&package["name"]).strip_prefix(PREFIX) else { continue };
        let mut broken = |rule, advice| {
            found.push(Violation { file: manifest(folder), line: 1, rule, advice });
        };
        if folder != TESTKIT && !ORDER.contains(&folder) {
            broken("crate-order", "give the crate its place in the design's table and in xtask".to_owned());
            continue;
        }
        for dependency in array(&package["dependencies"]) {
            let Some(used) = text(&dependency["name"]).strip_prefix(PREFIX) else { continue };
            if let Some((rule, advice)) = edge(folder, used, text(&dependency["kind"]) == "dev") {
                broken(rule, advice);
            }
        }
    }
    found.extend(asynchronous(metadata, &members));
    found
}

/// Path of a crate's manifest. `testkit` is no part of the program, so it lies beside `crates`.
fn manifest(folder: &str) -> String {
    if folder == TESTKIT { format!("{folder}/Cargo.toml") } else { format!("crates/{folder}/Cargo.toml") }
}

/// Violation by one crate using another, if any.
fn edge(folder: &str, used: &str, dev: bool) -> Option<(&'static str, String)> {
    if used == "cli" {
        return Some(("cli-is-the-top", "nothing depends on `cli`; move what is needed below it".to_owned()));
    }
    if folder == TESTKIT || (dev && used == TESTKIT) {
        return None;
    }
    if used == TESTKIT {
        return Some(("testkit-is-for-tests", "make `testkit` a dev-dependency".to_owned()));
    }
    let reader = READERS.into_iter().find(|(name, _)| *name == folder);
    if let Some((_, seen)) = reader.filter(|(_, seen)| !seen.contains(&used)) {
        let advice = format!("`{folder}` sees only {}; put what it needs into a result", seen.join(", "));
        return Some(("readers-see-results", advice));
    }
    let place = |name: &str| ORDER.iter().position(|other| *other == name);
    (place(used) >= place(folder)).then(|| {
        (
            "crate-order",
            format!("`{folder}` stands above `{used}`; turn the dependency round or move the code"),
        )
    })
}

/// Crates that depend on tokio other than through the crates for it.
fn asynchronous(metadata: &Value, members: &BTreeSet<&str>) -> Vec<Violation> {
    let names: BTreeMap<&str, &str> =
        array(&metadata["packages"]).map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let edges: BTreeMap<&str, Vec<&str>> = array(&metadata["resolve"]["nodes"])
        .map(|node| (text(&node["id"]), shipped(node).collect()))
        .collect();
    let folder = |id: &str| names.get(id).and_then(|name| name.strip_prefix(PREFIX));
    let is_asynchronous = |id: &str| folder(id).is_some_and(|folder| ASYNCHRONOUS.contains(&folder));
    let mut found = Vec::new();
    for member in members.iter().copied().filter(|member| !is_asynchronous(member)) {
        let mut seen = BTreeSet::from([member]);
        let mut waiting = vec![member];
        while let Some(id) = waiting.pop() {
            let next = edges.get(id).into_iter().flatten().copied().filter(|id| !is_asynchronous(id));
            waiting.extend(next.filter(|id| seen.insert(id)));
        }
        if seen.iter().any(|id| names.get(id) == Some(&"tokio")) {
            let name = names.get(member).copied().unwrap_or_default();
            let file = name.strip_prefix(PREFIX).map_or_else(|| format!("{name}/Cargo.toml"), manifest);
            let advice = format!(
                "only `{}` may use tokio; `cargo tree -i tokio` shows the dependency path",
                ASYNCHRONOUS.join("` and `")
            );
            found.push(Violation { file, line: 1, rule: "tokio", advice });
        }
    }
    found
}

/// Dependencies of a package without those of its tests.
fn shipped(node: &Value) -> impl Iterator<Item = &str> {
    array(&node["deps"])
        .filter(|dependency| array(&dependency["dep_kinds"]).any(|kind| text(&kind["kind"]) != "dev"))
        .map(|dependency| text(&dependency["pkg"]))
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
#[path = "crates_tests.rs"]
mod tests;
