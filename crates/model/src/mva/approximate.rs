//! Approximation for many operations, with a cost independent of their number.

use keepup_measure::sum::Sums;

use crate::engine_error::EngineError;
use crate::mva::{Method, NetworkSolution, Station, check, load};

/// Bisection steps for the rate: more than the digits of a double.
const HALVINGS: u32 = 80;

/// Solves a network by Bard and Schweitzer (Lazowska and others, section 6.4.2): an arriving
/// operation finds `(n - 1) / n` of the mean queue.
///
/// A station of several servers is modelled as one equally fast server plus a delay for the rest of
/// the service time (Seidmann, Schweitzer and Shalev-Oren 1987). Both are exact for one operation
/// and in the limit of many.
///
/// The relative error against the exact solution is largest where the operations just fill the
/// servers, and is mostly negative. From 1024 operations on, where [`crate::mva::network`] uses it,
/// it is at most 2 %, found with a delay before one station of 1 to 512 servers. With few
/// operations it is up to 7 % with single servers, and up to 26 % with several: use
/// [`crate::mva::exact`] there. It never leaves the bounds.
///
/// # Errors
/// Invalid stations or too many; no operations, or too many.
pub(crate) fn approximate(stations: &[Station], population: u32) -> Result<NetworkSolution, EngineError> {
    check(stations, population)?;
    let number = f64::from(population);
    let seen = (number - 1.0) / number;
    let seconds = |rate: f64| -> Vec<f64> { stations.iter().map(|one| residence(one, rate, seen)).collect() };
    // The number of operations increases with the rate, between zero and the saturation of the
    // slowest station.
    let slowest = stations.iter().filter(|one| !one.is_delay()).map(fast).fold(0.0, f64::max);
    let unhindered = number / stations.iter().map(|one| one.service_seconds).float_sum();
    let (mut low, mut high) = (0.0, unhindered.min(1.0 / slowest));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle * seconds(middle).iter().float_sum() < number { low = middle } else { high = middle }
    }
    load(stations, population, &seconds(high), Method::Approximate)
}

/// Service time of all servers together.
fn fast(station: &Station) -> f64 {
    station.service_seconds / f64::from(station.servers)
}

/// Residence time at this rate: the `R` of `R = s (1 + seen * rate * R)`, plus the delay.
fn residence(station: &Station, rate: f64, seen: f64) -> f64 {
    if station.is_delay() {
        return station.service_seconds;
    }
    let fast = fast(station);
    fast / (1.0 - seen * rate * fast) + (station.service_seconds - fast)
}
