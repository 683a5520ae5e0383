//! Name of the machine in results: its host name, unless that is left out, and a label from the user.
use std::path::Path;
use std::sync::OnceLock;

use crate::text;

/// What results say about the name of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Leave the host name out.
    pub hides_host: bool,
    /// Label from the user.
    pub label: Option<String>,
}

/// Naming of this process.
static NAMING: OnceLock<Naming> = OnceLock::new();

/// Sets the naming of all records of this process; once, before the first record.
pub fn set_naming(naming: Naming) {
    let _ = NAMING.set(naming);
}

impl Naming {
    /// The naming of this process.
    pub(super) fn current() -> Self {
        NAMING.get().cloned().unwrap_or_default()
    }

    /// Host name to record.
    pub(super) fn host(&self, root: &Path) -> Option<String> {
        let read = || text::read_trimmed(root, "proc/sys/kernel/hostname").ok();
        read().filter(|name| !self.hides_host && !name.is_empty())
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
