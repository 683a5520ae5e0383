//! The machines that are compiled in: the folder `machines/` of this crate.

use super::Machine;
use crate::error::ModelError;

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each machine, sorted by name.
        const EMBEDDED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../machines/", $name, ".toml")))),*];
    };
}

embedded![
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
];

/// Names of the built-in machines, sorted.
pub fn machine_names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

/// The built-in machine of that name.
///
/// # Errors
/// There is none; the error names those that are close.
pub fn machine(name: &str) -> Result<Machine, ModelError> {
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| ModelError::unknown("machine", name, machine_names()))?;
    Machine::parse(text, &format!("machines/{name}.toml"))
}
