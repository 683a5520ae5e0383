//! Contestants that take turns, and what is claimed about them.

use std::time::Duration;

use super::claims::Claim;
use super::contestant::{Contestant, Figure};

/// Contestants that take turns.
pub(super) struct Group {
    /// Its name in flags.
    pub(super) name: &'static str,
    /// What it is about.
    pub(super) title: &'static str,
    /// What the column of [`Figure::Rate`] is called.
    pub(super) rate: &'static str,
    /// Phases of each run, in the order of the table; one without a name where a run is not divided.
    pub(super) phases: Vec<String>,
    /// Columns of its table.
    pub(super) figures: Vec<Figure>,
    /// Who takes part.
    pub(super) contestants: Vec<Box<dyn Contestant>>,
    /// What is claimed.
    pub(super) claims: Vec<Claim>,
    /// What each of them has to do.
    pub(super) work: Work,
    /// Why nobody of it runs, if so.
    pub(super) skipped: Option<String>,
    /// What else there is to say.
    pub(super) notes: Vec<String>,
}

impl Group {
    /// A group of runs that are not divided, without claims, and no work but its time.
    pub(super) fn plain(
        name: &'static str,
        title: &'static str,
        figures: Vec<Figure>,
        contestants: Vec<Box<dyn Contestant>>,
    ) -> Self {
        Self {
            name,
            title,
            rate: "MB/s",
            phases: vec![String::new()],
            figures,
            contestants,
            claims: Vec::new(),
            work: Work { bytes: 0, time: Duration::ZERO },
            skipped: None,
            notes: Vec::new(),
        }
    }
}

/// What one run has to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Work {
    /// Bytes that it needs on the disk.
    pub(super) bytes: u64,
    /// How long it takes however fast the disk is.
    pub(super) time: Duration,
}

/// What is left of the groups when only these names take part; otherwise says which name is unknown.
pub(super) fn select(groups: Vec<Group>, only: &[String]) -> Result<Vec<Group>, String> {
    if only.is_empty() {
        return Ok(groups);
    }
    let names: Vec<String> = groups
        .iter()
        .flat_map(|group| {
            let contestants = group.contestants.iter().map(|contestant| contestant.name().to_owned());
            std::iter::once(group.name.to_owned()).chain(contestants)
        })
        .collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(format!("--only {unknown}: there are {}", names.join(", ")));
    }
    let is_chosen = |name: &str| only.iter().any(|chosen| chosen == name);
    let selected = groups.into_iter().map(|mut group| {
        if !is_chosen(group.name) {
            group.contestants.retain(|contestant| is_chosen(contestant.name()));
        }
        group
    });
    Ok(selected.filter(|group| !group.contestants.is_empty()).collect())
}

#[cfg(test)]
#[path = "group_tests.rs"]
pub(super) mod tests;
