//! Name of the machine in results: its host name, unless that is left out, and a label from the user.
use std::path::Path;
use std::sync::OnceLock;

use crate::text;

/// Variables that stand for the flags `--label` and `--no-host-name`.
const LABEL_VARIABLE: &str = "KEEPUP_LABEL";
const NO_HOST_NAME_VARIABLE: &str = "KEEPUP_NO_HOST_NAME";

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
    #[must_use]
    pub fn current() -> Self {
        NAMING.get().cloned().unwrap_or_default()
    }

    /// What is still open, from the environment that `read` reads. An empty value is none.
    #[must_use]
    pub fn or_environment(self, read: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| read(name).filter(|text| !text.is_empty());
        Self {
            hides_host: self.hides_host || variable(NO_HOST_NAME_VARIABLE).is_some(),
            label: self.label.or_else(|| variable(LABEL_VARIABLE)),
        }
    }

    /// Variables that give another process the same naming.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let hidden = self.hides_host.then(|| (NO_HOST_NAME_VARIABLE, "1".to_owned()));
        let label = self.label.clone().map(|label| (LABEL_VARIABLE, label));
        hidden.into_iter().chain(label).collect()
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
