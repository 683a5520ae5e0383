//! Which drain host has the copy of which recorder.
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use super::super::plan::RecordPlan;
use crate::error::FleetError;
use crate::file::{FleetFile, HostEntry};
use crate::message::{HostId, Role};

/// Part of a drain host: a recording for each of its recorders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainPlan {
    /// The copies.
    pub copies: Vec<RecordPlan>,
    /// Whether they are removed at the end, as those of a trial are.
    #[serde(default)]
    pub is_trial: bool,
}

/// The part of each drain host in `file`, and where recorders send their copies: each of `plans` gets the
/// address of its sink. On each address the sinks have the ports from `port` on that the plans leave free.
///
/// # Errors
/// A drain host without an address, or more copies than ports.
pub fn drain_plans(
    file: &FleetFile,
    port: u16,
    plans: &mut [Option<RecordPlan>],
) -> Result<Vec<Option<DrainPlan>>, FleetError> {
    let mut sinks = Sinks::new(file, &BTreeSet::new(), port);
    plans.iter().flatten().for_each(|plan| sinks.leave(plan.listen));
    let recorders = file.hosts.iter().zip(plans).filter_map(|(host, plan)| Some((host, plan.as_mut()?)));
    for (recorder, plan) in recorders {
        let of = &*plan;
        plan.drain_to =
            sinks.add(|drain, listen| copy(recorder, of, drain, listen)).map_err(FleetError::Record)?;
    }
    Ok(sinks.into_parts(false))
}

/// The copy of what `recorder` records. Its events arrive as they were recorded, reduced ones too.
fn copy(recorder: &HostEntry, plan: &RecordPlan, drain: &HostEntry, listen: SocketAddr) -> RecordPlan {
    let mut copy = plan.clone();
    copy.name = format!("{}-{}", plan.name, recorder.name);
    copy.volumes.clone_from(&drain.volumes);
    (copy.listen, copy.drain_to) = (listen, None);
    copy
}

/// The sinks of all drain hosts. Recorders are distributed over the hosts in their order.
pub(crate) struct Sinks<'a> {
    file: &'a FleetFile,
    drains: Vec<HostId>,
    /// First port, and the next one of each address.
    port: u16,
    free: BTreeMap<IpAddr, u16>,
    parts: Vec<Option<DrainPlan>>,
    added: usize,
}

/// The drain hosts in `file` that are not in `without`.
pub(crate) fn drain_hosts(file: &FleetFile, without: &BTreeSet<HostId>) -> Vec<HostId> {
    let all =
        (0..).zip(&file.hosts).filter(|(host, entry)| entry.role == Role::Drain && !without.contains(host));
    all.map(|(host, _)| host).collect()
}

/// That of recorder `number`, counted from 0 over the recorders that drain.
pub(crate) fn drain_of(drains: &[HostId], number: usize) -> Option<HostId> {
    drains.get(number % drains.len().max(1)).copied()
}

impl<'a> Sinks<'a> {
    /// Those of the drain hosts in `file` that are not in `without`.
    pub(crate) fn new(file: &'a FleetFile, without: &BTreeSet<HostId>, port: u16) -> Self {
        Self {
            file,
            drains: drain_hosts(file, without),
            port,
            free: BTreeMap::new(),
            parts: vec![None; file.hosts.len()],
            added: 0,
        }
    }

    /// Does not use a port.
    fn leave(&mut self, taken: SocketAddr) {
        let next = self.free.entry(taken.ip()).or_insert(self.port);
        *next = taken.port().saturating_add(1).max(*next);
    }

    /// Adds a sink; `plan` makes its recording from the host and the address, which is returned. None without
    /// drain hosts.
    ///
    /// # Errors
    /// The host has no address, or no port is left.
    pub(crate) fn add(
        &mut self,
        plan: impl FnOnce(&HostEntry, SocketAddr) -> RecordPlan,
    ) -> Result<Option<SocketAddr>, Cause> {
        let Some(drain) = drain_of(&self.drains, self.added).map(|drain| drain as usize) else {
            return Ok(None);
        };
        let host = &self.file.hosts[drain];
        let data = host.data.ok_or_else(|| {
            let why = Cause::new(format!("{}: recorders need the address of the drain host", host.name));
            why.with_hint("set `data` of each drain host to its address on the data network")
        })?;
        let next = self.free.entry(data).or_insert(self.port);
        let listen = (data, *next).into();
        // Port 65535 is never used.
        *next = next.checked_add(1).ok_or_else(|| {
            let why = Cause::new(format!("{}: there are no ports for so many copies", host.name));
            why.with_hint("a lower --fleet-port, or more drain hosts")
        })?;
        self.added += 1;
        let mut copy = plan(host, listen);
        // One connection, which must take what any connection of the recorder takes.
        let settings = &mut copy.settings;
        settings.pool_bytes /= settings.intake_threads.max(1);
        settings.intake_threads = 1;
        settings.reductions.clear();
        let part = self.parts[drain].get_or_insert_with(|| DrainPlan { copies: Vec::new(), is_trial: false });
        part.copies.push(copy);
        Ok(Some(listen))
    }

    /// The part of each host.
    pub(crate) fn into_parts(mut self, is_trial: bool) -> Vec<Option<DrainPlan>> {
        self.parts.iter_mut().flatten().for_each(|plan| plan.is_trial = is_trial);
        self.parts
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
