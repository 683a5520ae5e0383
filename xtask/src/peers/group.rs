//! Groups of contestants with their claims.

use std::time::Duration;

use super::claims::Claim;
use super::contestant::{Contestant, Figure};
use super::runner::Work;

/// Group of contestants that run alternately.
pub(super) struct Group {
    /// Name in flags.
    pub(super) name: &'static str,
    /// Title.
    pub(super) title: &'static str,
    /// Title of the column [`Figure::Rate`].
    pub(super) rate: &'static str,
    /// Phases of each run in table order; a single unnamed one if undivided.
    pub(super) phases: Vec<String>,
    /// Columns of the table.
    pub(super) figures: Vec<Figure>,
    /// Contestants.
    pub(super) contestants: Vec<Box<dyn Contestant>>,
    /// Claims.
    pub(super) claims: Vec<Claim>,
    /// Work of each run.
    pub(super) work: Work,
    /// Reason for skipping the group, if any.
    pub(super) skipped: Option<String>,
    /// Notes.
    pub(super) notes: Vec<String>,
}

impl Group {
    /// Creates a group of undivided runs without claims or data.
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

/// Selects the groups and contestants named in `only`. Fails for unknown names.
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
        return Err(format!("--only {unknown}: unknown; use {}", names.join(", ")));
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
