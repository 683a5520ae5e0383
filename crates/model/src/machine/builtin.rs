//! Built-in machines: the folder `machines/` of this crate, compiled in.

use super::Machine;
use crate::error::ModelError;

keepup_plan::embedded! {
    "../../machines/":
    "papers/cdf-logger",
    "papers/cern-l865",
    "papers/cern-ppc4",
    "papers/esrf-e1",
    "papers/esrf-e2",
    "papers/esrf-e3",
    "papers/esrf-e4",
    "papers/esrf-e5",
    "papers/esrf-e6",
    "papers/esrf-e7",
    "papers/esrf-e8",
    "papers/romanis",
    "papers/romanis-as-built",
    "papers/romanis-p166",
    "papers/tweakers",
    "today/camera-pc",
    "today/laptop",
    "today/raid6-12",
    "today/recorder-100g",
}

/// Names of the built-in machines, sorted.
pub fn machine_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// Built-in machine with this name.
///
/// # Errors
/// Unknown name; the error suggests similar names.
pub fn machine(name: &str) -> Result<Machine, ModelError> {
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| ModelError::unknown("machine", name, machine_names()))?;
    Machine::parse(text, &format!("machines/{name}.toml"))
}
