//! Licences of all linked crates: licence of each crate, and each text once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

/// Package of the program.
pub(super) const PROGRAM: &str = "keepup-cli";
/// Prefixes of licence files, in lower case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "unlicense", "notice", "copyright"];
/// Other code in the program: the chart library of reports.
const VENDORED: &str = "crates/report/vendor";

/// List of crates with their licences, then every licence text with its crates.
pub(super) fn text(metadata: &Value) -> Result<String> {
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in shipped(metadata)? {
        let name = format!("{} {}", word(&package["name"]), word(&package["version"]));
        let licence = package["license"].as_str().unwrap_or("see its text");
        list.push_str(&format!("{name}: {licence}; {}\n", word(&package["repository"])));
        let folder =
            Path::new(word(&package["manifest_path"])).parent().context("a package has no folder")?;
        add(&mut texts, folder, &name)?;
    }
    let vendored = Path::new(word(&metadata["workspace_root"])).join(VENDORED);
    add(&mut texts, &vendored, "Apache ECharts and what it contains")?;
    add(&mut texts, &standard_library()?, "the Rust standard library")?;
    let texts = texts.into_iter().map(|(text, names)| {
        let names: Vec<String> = names.into_iter().collect();
        format!("{}\n\nOf: {}\n\n{text}\n", "=".repeat(80), names.join(", "))
    });
    Ok(format!("keepup contains these crates.\n\n{list}\n{}", texts.collect::<String>()))
}

/// Linked dependencies of the program, without procedural macros.
fn shipped(metadata: &Value) -> Result<Vec<&Value>> {
    let by_id = |list: &'static str| {
        let of = if list == "nodes" { &metadata["resolve"] } else { metadata };
        let entries = of[list].as_array().into_iter().flatten();
        entries.map(|entry| (word(&entry["id"]), entry)).collect::<BTreeMap<&str, &Value>>()
    };
    let (packages, nodes) = (by_id("packages"), by_id("nodes"));
    let own = packages.iter().find(|(_, package)| package["name"] == PROGRAM);
    let mut waiting = vec![*own.context("cargo metadata has no keepup-cli")?.0];
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        let Some(package) = packages.get(id).filter(|package| !is_macro(package)) else { continue };
        if !seen.insert((word(&package["name"]), word(&package["version"]), id)) {
            continue;
        }
        let edges = nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let normal = edges.filter(|edge| {
            let mut kinds = edge["dep_kinds"].as_array().into_iter().flatten();
            kinds.any(|kind| kind["kind"].is_null())
        });
        waiting.extend(normal.map(|edge| word(&edge["pkg"])));
    }
    let foreign = seen.into_iter().filter_map(|(_, _, id)| packages.get(id).copied());
    Ok(foreign.filter(|package| !package["source"].is_null()).collect())
}

fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    let mut kinds = targets.flat_map(|target| target["kind"].as_array().into_iter().flatten());
    kinds.any(|kind| kind == "proc-macro")
}

fn standard_library() -> Result<std::path::PathBuf> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot run rustc")?;
    Ok(Path::new(String::from_utf8_lossy(&sysroot.stdout).trim()).join("share/doc/rust"))
}

/// Adds the licence files in a folder, if it exists.
fn add(texts: &mut BTreeMap<String, BTreeSet<String>>, folder: &Path, name: &str) -> Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().to_lowercase();
        if entry.path().is_file() && NAMES.iter().any(|start| file.starts_with(start)) {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).trim().to_owned();
            texts.entry(text).or_default().insert(name.to_owned());
        }
    }
    Ok(())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
