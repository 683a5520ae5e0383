//! The highest rate of a path: what its scarcest resource leaves it.
//!
//! Stages of a stream work at the same time, so the slowest one sets the rate. A resource that others use too
//! is shared by max-min fairness: who asks for less than an equal share gets that, the rest is divided.

use crate::system::{Flow, Resource, System, Use, demand};

/// What sets a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    /// There is no more of the resource.
    Capacity,
    /// A master waits for answers: more of the resource would not help.
    RoundTrip,
}

/// The rate to which one resource alone would hold the path.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Place in [`System::resources`].
    pub resource: usize,
    /// Its name.
    pub name: String,
    /// What about it.
    pub kind: LimitKind,
    /// Payload, bytes per second.
    pub bytes_per_second: f64,
    /// Share of it in use at the path's rate, with what runs beside it, 0 to 1.
    pub utilisation: f64,
}

/// What a path reaches.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Payload, bytes per second.
    pub bytes_per_second: f64,
    /// The limits, lowest first: the bottleneck, the runner-up and so on.
    pub limits: Vec<Limit>,
}

/// What it would bring to have a tenth more of one resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// Place in [`System::resources`].
    pub resource: usize,
    /// Growth of the rate as a share, 0 to 0.1.
    pub gain: f64,
}

/// The rate that a path reaches, and what limits it. A path that asks for nothing has no limit: its rate is
/// infinite.
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

/// What a flow asks of a resource each second.
fn wanted(flow: &Flow, resource: usize) -> f64 {
    flow.bytes_per_second * demand(&flow.uses, resource, flow.operation_bytes)
}

/// Whether any flow beside the path uses a resource.
pub(crate) fn is_shared(system: &System, resource: usize) -> bool {
    system.beside.iter().any(|flow| wanted(flow, resource) > 0.0)
}

/// What is left for one who takes all he gets, beside others who want so much: the fair level above which
/// nobody who asks for more is served.
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

/// Rate of a master that waits, in payload of the path.
pub(crate) fn window_rate(one: &Use, resource: &Resource, is_shared: bool) -> Option<f64> {
    let window = one.window.filter(|_| one.per_byte > 0.0)?;
    let wait = if is_shared { window.behind_bytes / resource.capacity } else { 0.0 };
    let moved = window.outstanding * window.request_bytes / (window.round_trip_seconds + wait);
    Some(moved / one.per_byte)
}

/// What a tenth more of each resource would bring, most first; resources that the path does not use are left
/// out.
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
