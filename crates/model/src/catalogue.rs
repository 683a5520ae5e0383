//! The catalog of parts: the folder `parts/` of this crate, compiled in.
//!
//! Invariants: every part is checked when it is read; names are unique over all files.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::error::{Fault, ModelError, read};
use crate::formulas::bus::PCIE_WIDTHS;
use crate::part::{Formula, Part};
use crate::ranged::{Ranged, Source};
use crate::unit::Unit;

keepup_plan::embedded! {
    "../parts/":
    "controllers",
    "disks",
    "ethernet",
    "fibre-channel",
    "parallel-buses",
    "pcie",
    "processors",
    "storage-links",
    "vme",
}

/// Longest chain of `like` references.
const CHAIN_MAX: usize = 8;

/// A family of parts, as in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    family: String,
    part: BTreeMap<String, Entry>,
}

/// One part of a file. Missing values are taken from the part it is `like`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    title: String,
    like: Option<String>,
    formula: Option<Formula>,
    #[serde(default)]
    figures: BTreeMap<String, Ranged>,
}

static CATALOGUE: LazyLock<Result<Vec<Part>, ModelError>> = LazyLock::new(|| {
    let mut parts = Vec::new();
    for (name, text) in EMBEDDED {
        parts.extend(parse_parts(text, &format!("parts/{name}.toml"))?);
    }
    Ok(parts)
});

/// All parts by family.
///
/// # Errors
/// Only for faults of the built-in files, which tests read.
pub fn catalogue() -> Result<&'static [Part], ModelError> {
    CATALOGUE.as_ref().map(Vec::as_slice).map_err(Clone::clone)
}

/// The part with this name. The name of a PCI Express link may include its width: `pcie3x8`.
///
/// # Errors
/// Unknown name; the error suggests similar names.
pub fn part(name: &str) -> Result<Part, ModelError> {
    let parts = catalogue()?;
    if let Some(found) = parts.iter().find(|part| part.name == name) {
        return Ok(found.clone());
    }
    with_lanes(parts, name)
        .ok_or_else(|| ModelError::unknown("part", name, parts.iter().map(|part| part.name.as_str())))
}

/// `pcie3x8` is `pcie3` with eight lanes.
fn with_lanes(parts: &[Part], name: &str) -> Option<Part> {
    let (base, lanes) = name.rsplit_once('x')?;
    let lanes: u32 = lanes.parse().ok().filter(|lanes| PCIE_WIDTHS.contains(lanes))?;
    let found = parts.iter().find(|part| part.name == base && part.formula == Formula::Pcie)?;
    let mut part =
        Part { name: name.to_owned(), title: format!("{}, x{lanes}", found.title), ..found.clone() };
    let value = f64::from(lanes);
    let from = "the width in the name of the part".to_owned();
    let figure =
        Ranged { value, low: value, high: value, unit: Unit::named("")?, source: Source::Standard, from };
    part.figures.insert("lanes".to_owned(), figure);
    Some(part)
}

/// Parses a family of parts. `file` is used in errors.
///
/// # Errors
/// Invalid TOML, unknown keys, missing figures, or contradictions; with location.
pub(crate) fn parse_parts(text: &str, file: &str) -> Result<Vec<Part>, ModelError> {
    let family: Family = read(text, file)?;
    let entries = family.part.keys();
    let parts = entries.map(|name| {
        let placed = |fault: Fault| fault.placed(text, file);
        let part = resolve(&family, name).map_err(placed)?;
        let inside = |fault: Fault| {
            let key = if fault.key.is_empty() { String::new() } else { format!(".figures.{}", fault.key) };
            placed(Fault::new(format!("part.{name}{key}"), fault.reason))
        };
        part.check().map_err(inside)?;
        Ok(part)
    });
    parts.collect()
}

/// A part with the values inherited through `like`.
fn resolve(family: &Family, name: &str) -> Result<Part, Fault> {
    let key = format!("part.{name}");
    let own = &family.part[name];
    let mut figures = own.figures.clone();
    let mut formula = own.formula;
    let mut entry = own;
    let mut seen = 1;
    while let Some(base) = &entry.like {
        entry = family.part.get(base).ok_or_else(|| {
            Fault::new(format!("{key}.like"), format!("no part named {base:?} in this file"))
        })?;
        seen += 1;
        if seen > CHAIN_MAX {
            let reason =
                format!("`like` chain through {base:?} is circular or longer than {CHAIN_MAX} parts");
            return Err(Fault::new(format!("{key}.like"), reason));
        }
        for (name, figure) in &entry.figures {
            figures.entry(name.clone()).or_insert_with(|| figure.clone());
        }
        formula = formula.or(entry.formula);
    }
    let formula =
        formula.ok_or_else(|| Fault::new(&*key, "no formula, neither its own nor through `like`"))?;
    let (name, title, family) = (name.to_owned(), own.title.clone(), family.family.clone());
    Ok(Part { name, title, family, formula, figures })
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
