//! Maximum rate of a path, determined by its scarcest resource.
//!
//! Stages of a stream work concurrently, so the slowest one sets the rate. Shared resources use
//! max-min fairness: demands below an equal share are met, the rest is divided.

use crate::system::{Flow, Resource, System, Use, demand};

/// Cause of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// The capacity of the resource.
    Capacity,
    /// A master waits for answers: more of the resource would not help.
    RoundTrip,
}

/// Limit of the path by one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Index in [`System::resources`].
    pub resource: usize,
    /// Name.
    pub name: String,
    /// Cause.
    pub kind: LimitKind,
    /// Payload, bytes per second.
    pub bytes_per_second: f64,
    /// Utilization at the path's rate including background traffic, 0 to 1.
    pub utilisation: f64,
}

/// Solution for a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Payload, bytes per second.
    pub bytes_per_second: f64,
    /// Limits, lowest first: the bottleneck, the runner-up and so on.
    pub limits: Vec<Limit>,
}

/// Effect of 10 % more of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// Index in [`System::resources`].
    pub resource: usize,
    /// Relative growth of the rate, 0 to 0.1.
    pub gain: f64,
}

/// Solves a path. A path without demand has no limit: its rate is infinite.
#[must_use]
pub fn solve(system: &System) -> Solution {
    let mut limits: Vec<Limit> = Vec::new();
    for (number, resource) in system.resources.iter().enumerate() {
        let each = demand(&system.uses, number, system.operation_bytes);
        if each <= 0.0 {
            continue;
        }
        let wanted: Vec<f64> = system.beside.iter().map(|flow| wanted(flow, number)).collect();
        limits.push(limit(number, resource, LimitKind::Capacity, left(resource.capacity, &wanted) / each));
        let is_shared = is_shared(system, number);
        let windows = system.uses.iter().filter(|one| one.resource == number);
        limits.extend(windows.filter_map(|one| {
            let rate = window_rate(one, resource, is_shared)?;
            Some(limit(number, resource, LimitKind::RoundTrip, rate))
        }));
    }
    limits.sort_by(|a, b| a.bytes_per_second.total_cmp(&b.bytes_per_second));
    let rate = limits.first().map_or(f64::INFINITY, |limit| limit.bytes_per_second);
    for limit in &mut limits {
        limit.utilisation = match limit.kind {
            LimitKind::RoundTrip => rate / limit.bytes_per_second,
            LimitKind::Capacity => {
                let own = rate * demand(&system.uses, limit.resource, system.operation_bytes);
                let others: f64 = system.beside.iter().map(|flow| wanted(flow, limit.resource)).sum();
                ((own + others) / system.resources[limit.resource].capacity).min(1.0)
            }
        };
    }
    Solution { bytes_per_second: rate, limits }
}

fn limit(number: usize, resource: &Resource, kind: LimitKind, rate: f64) -> Limit {
    Limit { resource: number, name: resource.name.clone(), kind, bytes_per_second: rate, utilisation: 0.0 }
}

/// Demand of a flow on a resource per second.
fn wanted(flow: &Flow, resource: usize) -> f64 {
    flow.bytes_per_second * demand(&flow.uses, resource, flow.operation_bytes)
}

/// Whether background traffic uses a resource.
pub(crate) fn is_shared(system: &System, resource: usize) -> bool {
    system.beside.iter().any(|flow| wanted(flow, resource) > 0.0)
}

/// Max-min fair share of a greedy flow beside others with these demands.
fn left(capacity: f64, wanted: &[f64]) -> f64 {
    let mut wanted: Vec<f64> = wanted.iter().copied().filter(|wanted| *wanted > 0.0).collect();
    wanted.sort_by(f64::total_cmp);
    let mut left = capacity;
    let mut sharing = wanted.len() as f64 + 1.0;
    for one in wanted {
        if one >= left / sharing {
            break;
        }
        left -= one;
        sharing -= 1.0;
    }
    left / sharing
}

/// Rate of a waiting master, in payload of the path.
pub(crate) fn window_rate(one: &Use, resource: &Resource, is_shared: bool) -> Option<f64> {
    let window = one.window.filter(|_| one.per_byte > 0.0)?;
    let wait = if is_shared { window.behind_bytes / resource.capacity } else { 0.0 };
    let moved = window.outstanding * window.request_bytes / (window.round_trip_seconds + wait);
    Some(moved / one.per_byte)
}

/// Effect of 10 % more of each resource, largest first, without unused resources.
#[must_use]
pub fn gains(system: &System) -> Vec<Gain> {
    let rate = solve(system).bytes_per_second;
    let is_used = |number: &usize| demand(&system.uses, *number, system.operation_bytes) > 0.0;
    let gain = |resource: usize| {
        let mut more = system.clone();
        more.resources[resource].capacity *= 1.1;
        let windows = more.uses.iter_mut().filter(|one| one.resource == resource);
        windows.filter_map(|one| one.window.as_mut()).for_each(|window| window.round_trip_seconds /= 1.1);
        Gain { resource, gain: solve(&more).bytes_per_second / rate - 1.0 }
    };
    let mut gains: Vec<Gain> = (0..system.resources.len()).filter(is_used).map(gain).collect();
    gains.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    gains
}

#[cfg(test)]
#[path = "solve_tests.rs"]
mod tests;
