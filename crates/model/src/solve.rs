//! Maximum rate of a path, determined by its scarcest resource.
//!
//! Stages of a stream work concurrently, so the slowest one sets the rate. Shared resources use
//! max-min fairness: demands below a flow's share are met, the rest is divided. An arbiter gives equal
//! shares. A queue that serves requests in order of arrival gives shares in proportion to the bytes that
//! each flow keeps in flight: between two of a flow's completions, everything that was queued before its
//! next request is served.

use keepup_measure::sum::Sums;

use crate::system::{Flow, Resource, System, Use, demand, in_flight};

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

impl Limit {
    /// Demand on the resource at a rate of the path, with background traffic, over its capacity: above 1 it
    /// is insufficient. Waiting masters count as used at their highest rate.
    #[must_use]
    pub fn utilisation_at(&self, system: &System, bytes_per_second: f64) -> f64 {
        match self.kind {
            LimitKind::RoundTrip => bytes_per_second / self.bytes_per_second,
            LimitKind::Capacity => {
                let own = bytes_per_second * demand(&system.uses, self.resource, system.operation_bytes);
                let others: f64 = system.beside.iter().map(|flow| wanted(flow, self.resource)).float_sum();
                (own + others) / system.resources[self.resource].capacity
            }
        }
    }
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
        let (own_weight, others) = shares(system, number);
        let left = left(resource.capacity, own_weight, &others);
        limits.push(limit(number, resource, LimitKind::Capacity, left / each));
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
        limit.utilisation = limit.utilisation_at(system, rate).min(1.0);
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

/// Demand of another flow, and its weight in the division of a resource.
#[derive(Debug, Clone, Copy)]
struct Share {
    wanted: f64,
    weight: f64,
}

/// Weight of the path on a resource, and the shares of the flows beside it: bytes in flight if all state
/// them, otherwise equal.
fn shares(system: &System, resource: usize) -> (f64, Vec<Share>) {
    let flows: Vec<&Flow> = system.beside.iter().filter(|flow| wanted(flow, resource) > 0.0).collect();
    let own = in_flight(&system.uses, resource);
    let weights: Option<Vec<f64>> = flows.iter().map(|flow| in_flight(&flow.uses, resource)).collect();
    let (own, weights) = own.zip(weights).unwrap_or_else(|| (1.0, vec![1.0; flows.len()]));
    let share = |(flow, weight): (&Flow, f64)| Share { wanted: wanted(flow, resource), weight };
    (own, flows.into_iter().zip(weights).map(share).collect())
}

/// Weighted max-min fair share of a greedy flow beside others.
fn left(capacity: f64, own_weight: f64, others: &[Share]) -> f64 {
    let mut others = others.to_vec();
    others.sort_by(|a, b| (a.wanted / a.weight).total_cmp(&(b.wanted / b.weight)));
    let mut left = capacity;
    let mut weights = own_weight + others.iter().map(|one| one.weight).float_sum();
    for one in others {
        if one.wanted >= left * one.weight / weights {
            break;
        }
        left -= one.wanted;
        weights -= one.weight;
    }
    left * own_weight / weights
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
