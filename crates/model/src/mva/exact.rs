//! Exact mean value analysis for one class of operations.
//!
//! An arriving operation finds the station in its mean state with one operation fewer. A station of
//! `c` servers also needs the probabilities of `0` to `c - 2` operations. All of these follow from
//! the rate, except the probability of an empty station: computed as 1 minus the others it loses
//! all digits near saturation. Here it is the ratio of the normalizing constants without and with
//! the station (Buzen 1973), without subtraction.

use keepup_measure::sum::Sums;

use crate::engine_error::EngineError;
use crate::mva::{EXACT_POPULATION_MAX, Method, NetworkSolution, Station, check, check_population, load};

/// Solves a network for 1, 2, ... up to `population` operations.
///
/// # Errors
/// Invalid stations or too many; no operations, or too many.
pub fn exact(stations: &[Station], population: u32) -> Result<Vec<NetworkSolution>, EngineError> {
    check(stations, population)?;
    check_population(population, EXACT_POPULATION_MAX, "use the approximate method")?;
    let mut places = places(stations, population as usize);
    let mut loads = Vec::with_capacity(population as usize);
    for number in 1..=population {
        let seconds: Vec<f64> = places.iter().map(StationState::residence).collect();
        let load = load(stations, number, &seconds, Method::Exact)?;
        for (place, seconds) in places.iter_mut().zip(&seconds) {
            place.go_on(load.operations_per_second, *seconds, number as usize);
        }
        loads.push(load);
    }
    Ok(loads)
}

/// State of a station.
struct StationState<'a> {
    station: &'a Station,
    /// More servers than operations make no difference.
    servers: usize,
    /// Mean number of operations.
    queue: f64,
    /// Probabilities of 0, 1, ... `servers - 2` operations.
    often: Vec<f64>,
    /// Probability of an empty station, by number of operations.
    empty: Vec<f64>,
}

impl StationState<'_> {
    /// Residence time of an operation, seconds.
    fn residence(&self) -> f64 {
        let service = self.station.service_seconds;
        if self.station.is_delay() {
            return service;
        }
        let idle: f64 =
            self.often.iter().enumerate().map(|(n, often)| (self.servers - 1 - n) as f64 * often).float_sum();
        service / self.servers as f64 * (1.0 + self.queue + idle)
    }

    /// Advances from one operation fewer to this number.
    fn go_on(&mut self, rate: f64, residence: f64, number: usize) {
        self.queue = rate * residence;
        for n in (1..self.often.len()).rev() {
            self.often[n] = rate * self.station.service_seconds / n as f64 * self.often[n - 1];
        }
        if let Some(often) = self.often.first_mut() {
            *often = self.empty[number];
        }
    }
}

fn places(stations: &[Station], population: usize) -> Vec<StationState<'_>> {
    let servers: Vec<usize> = stations
        .iter()
        .map(|one| if one.is_delay() { 1 } else { (one.servers as usize).min(population) })
        .collect();
    let mut empty = vec![Vec::new(); stations.len()];
    if servers.iter().any(|servers| *servers > 1) {
        empty = often_empty(stations, &servers, population);
    }
    let place = |((station, servers), empty): ((_, usize), Vec<f64>)| {
        let mut often = vec![0.0; servers - 1];
        if let Some(none) = often.first_mut() {
            *none = 1.0;
        }
        StationState { station, servers, queue: 0.0, often, empty }
    };
    stations.iter().zip(servers).zip(empty).map(place).collect()
}

/// Probability of an empty station for each multi-server station, with 0 to `population`
/// operations.
fn often_empty(stations: &[Station], servers: &[usize], population: usize) -> Vec<Vec<f64>> {
    let of = |at: usize| factors(&stations[at], servers[at], population);
    let none =
        || [0.0].into_iter().chain(std::iter::repeat_n(f64::NEG_INFINITY, population)).collect::<Vec<_>>();
    // Combines suffixes and prefixes of the stations.
    let mut after = vec![none()];
    for at in (0..stations.len()).rev() {
        let next = join(&after[stations.len() - 1 - at], &of(at));
        after.push(next);
    }
    let all = after[stations.len()].clone();
    let mut before = none();
    let mut empty = Vec::with_capacity(stations.len());
    for at in 0..stations.len() {
        let mut often = Vec::new();
        if servers[at] > 1 {
            let without = join(&before, &after[stations.len() - 1 - at]);
            often = without.iter().zip(&all).map(|(without, all)| (without - all).exp()).collect();
        }
        before = join(&before, &of(at));
        empty.push(often);
    }
    empty
}

/// Logarithms of a station's weight with 0 to `population` operations: product of service times
/// over busy servers.
fn factors(station: &Station, servers: usize, population: usize) -> Vec<f64> {
    let service = station.service_seconds.ln();
    let mut sum = 0.0;
    let weights = (1..=population).map(|n| {
        let working = if station.is_delay() { n } else { n.min(servers) };
        sum += service - (working as f64).ln();
        sum
    });
    [0.0].into_iter().chain(weights).collect()
}

/// Logarithms of the normalizing constants of two combined parts.
fn join(one: &[f64], other: &[f64]) -> Vec<f64> {
    let sum = |n: usize| {
        let terms = || one[..=n].iter().zip(other[..=n].iter().rev()).map(|(one, other)| one + other);
        let largest = terms().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            return largest;
        }
        largest + terms().map(|term| (term - largest).exp()).float_sum().ln()
    };
    (0..one.len()).map(sum).collect()
}
