//! Conversion of a path through a machine to a queueing network.

use keepup_measure::sum::Sums;

use crate::engine_error::EngineError;
use crate::mva::{NetworkSolution, Station, StationKind, network};
use crate::solve::{LimitKind, is_shared, solve, window_rate};
use crate::system::{System, Use};

const WHAT: &str = "a path with operations that wait for each other";

/// Rate of a path with a number of concurrent operations.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedPath {
    /// Payload, bytes per second.
    pub bytes_per_second: f64,
    /// The network: its stations are the resources of the path and the windows of its masters.
    pub load: NetworkSolution,
}

/// Rate of a path with `outstanding` concurrent operations, each of which uses the resources
/// sequentially.
///
/// A resource becomes a station of `count` servers; the service time is an operation's demand over
/// one server's capacity after background traffic. So the rate is at most that of [`crate::solve`],
/// and approaches it with many operations.
///
/// A [`crate::Window`] becomes a station too, held for the round trips of an operation's requests,
/// so the rate is capped as in `solve`, and a single operation sees the round trips. It has as many
/// servers as whole operations fit in the window. The transfer is part of the round trip and is
/// counted once: with the window if that is the lower limit, otherwise with the resource.
///
/// # Errors
/// A path without demand, no operations, or more than [`crate::mva::POPULATION_MAX`].
pub fn closed(system: &System, outstanding: u32) -> Result<ClosedPath, EngineError> {
    if !(system.operation_bytes.is_finite() && system.operation_bytes > 0.0) {
        let name = "operations".to_owned();
        let (value, wanted) = (system.operation_bytes, "number of bytes above 0");
        return Err(EngineError::BadFigure { what: WHAT, name, value, wanted });
    }
    let load = network(&stations(system), outstanding)?;
    Ok(ClosedPath { bytes_per_second: load.operations_per_second * system.operation_bytes, load })
}

fn stations(system: &System) -> Vec<Station> {
    let mut stations = Vec::new();
    for limit in solve(system).limits.iter().filter(|limit| limit.kind == LimitKind::Capacity) {
        let resource = &system.resources[limit.resource];
        // Of all of them together, per operation.
        let mut seconds = system.operation_bytes / limit.bytes_per_second;
        let uses = || system.uses.iter().filter(|one| one.resource == limit.resource);
        let each: f64 = uses().map(|one| one.demand(system.operation_bytes)).float_sum();
        let shared = is_shared(system, limit.resource);
        let mut windows = Vec::new();
        for one in uses() {
            let Some(rate) = window_rate(one, resource, shared) else { continue };
            let transfer =
                system.operation_bytes / limit.bytes_per_second * one.demand(system.operation_bytes) / each;
            let is_lower = rate < limit.bytes_per_second;
            let name = format!("{}: answers waited for", resource.name);
            windows.extend(window(
                one,
                name,
                system.operation_bytes,
                rate,
                if is_lower { 0.0 } else { transfer },
            ));
            if is_lower {
                seconds -= transfer;
            }
        }
        stations.push(Station {
            name: resource.name.clone(),
            service_seconds: (seconds * f64::from(resource.count)).max(0.0),
            servers: resource.count,
            kind: StationKind::Queueing,
        });
        stations.append(&mut windows);
    }
    stations
}

/// Station of a window; `None` if all of its time is counted elsewhere.
fn window(one: &Use, name: String, operation_bytes: f64, rate: f64, elsewhere: f64) -> Option<Station> {
    let window = one.window?;
    let requests = operation_bytes * one.per_byte / window.request_bytes;
    let servers = (window.outstanding / requests).floor().clamp(1.0, f64::from(u32::MAX));
    let service_seconds = servers * operation_bytes / rate - elsewhere;
    (service_seconds > 0.0).then_some(Station {
        name,
        service_seconds,
        servers: servers as u32,
        kind: StationKind::Queueing,
    })
}
