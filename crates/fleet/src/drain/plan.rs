//! Which drain host has the copy of which recorder.
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use keepup_error::Cause;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::file::{FleetFile, HostEntry};
use crate::message::Role;
use crate::record::RecordPlan;

/// First port on which drain hosts listen; the second copy on an address has the next one, and so on.
pub const DRAIN_PORT: u16 = 7700;
/// Memory that a sink needs at least, bytes: blocks of two flushes for each volume.
const POOL_BYTES_MIN: usize = 64 << 20;

/// Part of a drain host: a recording for each of its recorders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainPlan {
    /// The copies.
    pub copies: Vec<RecordPlan>,
}

/// The part of each drain host in `file`, and where recorders send their copies: each of `plans` gets the
/// address of its sink. Recorders and spares are distributed over the drain hosts in their order.
///
/// # Errors
/// A drain host without an address, or more copies than ports.
pub fn drain_plans(
    file: &FleetFile,
    plans: &mut [Option<RecordPlan>],
) -> Result<Vec<Option<DrainPlan>>, FleetError> {
    let drains: Vec<usize> = (0..file.hosts.len()).filter(|&host| is_drain(&file.hosts[host])).collect();
    let mut parts: Vec<Option<DrainPlan>> = vec![None; file.hosts.len()];
    let mut used: BTreeMap<IpAddr, u16> = BTreeMap::new();
    let recorders = file.hosts.iter().zip(plans).filter_map(|(host, plan)| Some((host, plan.as_mut()?)));
    for ((recorder, plan), &drain) in recorders.zip(drains.iter().cycle()) {
        let host = &file.hosts[drain];
        let listen = address(host, &mut used)?;
        plan.drain_to = Some(listen);
        let copies = &mut parts[drain].get_or_insert_with(|| DrainPlan { copies: Vec::new() }).copies;
        copies.push(copy(recorder, plan, host, listen));
    }
    for plan in parts.iter_mut().flatten() {
        share_memory(&mut plan.copies);
    }
    Ok(parts)
}

fn is_drain(host: &HostEntry) -> bool {
    host.role == Role::Drain
}

/// Address of the next sink of a drain host.
fn address(host: &HostEntry, used: &mut BTreeMap<IpAddr, u16>) -> Result<SocketAddr, FleetError> {
    let refuse = |why: String, hint: &str| FleetError::Record(Cause::new(why).with_hint(hint));
    let Some(data) = host.data else {
        let why = format!("{}: recorders need the address of the drain host", host.name);
        return Err(refuse(why, "set `data` of each drain host to its address on the data network"));
    };
    let number = used.entry(data).or_default();
    let port = DRAIN_PORT.checked_add(*number).ok_or_else(|| {
        refuse(format!("{}: there are no ports for so many copies", host.name), "add drain hosts")
    })?;
    *number += 1;
    Ok((data, port).into())
}

/// The copy of what `recorder` records: complete events, whatever it removes or reduces itself.
fn copy(recorder: &HostEntry, plan: &RecordPlan, drain: &HostEntry, listen: SocketAddr) -> RecordPlan {
    let mut copy = plan.clone();
    copy.name = format!("{}-{}", plan.name, recorder.name);
    copy.volumes.clone_from(&drain.volumes);
    (copy.listen, copy.drain_to) = (listen, None);
    copy.settings.reductions.clear();
    copy
}

/// All sinks of a host together use the memory of one recorder, if that is enough.
fn share_memory(copies: &mut [RecordPlan]) {
    let count = copies.len().max(1);
    for copy in copies {
        let share = copy.settings.pool_bytes / count;
        copy.settings.pool_bytes = share.max(POOL_BYTES_MIN).min(copy.settings.pool_bytes);
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
