//! Recorders of the latest view, for questions about every host in every turn.
use std::collections::HashSet;

use crate::message::HostId;
use crate::placement::View;

/// Recorders of the latest view. [`View::has`] searches all slots, which is too slow for thousands of hosts.
#[derive(Debug, Default)]
pub struct ViewMembers {
    epoch: u64,
    hosts: HashSet<HostId>,
}

impl ViewMembers {
    /// Takes over the view of a controller, if it has changed.
    pub fn update(&mut self, view: &View) {
        if self.epoch != view.epoch {
            self.epoch = view.epoch;
            self.hosts = view.slots.iter().flatten().map(|member| member.host).collect();
        }
    }

    /// Whether `host` is a recorder of the view.
    #[must_use]
    pub fn has(&self, host: HostId) -> bool {
        self.hosts.contains(&host)
    }
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
