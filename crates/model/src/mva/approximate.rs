//! The approximation for large numbers of operations: its cost does not grow with them.

use crate::engine_error::EngineError;
use crate::mva::{Load, Method, Station, check, load};

/// Halvings of the interval in which the rate lies: more than a double has digits.
const HALVINGS: u32 = 80;

/// A network with so many operations under way, by Bard and Schweitzer (Lazowska and others, section 6.4.2):
/// who arrives finds `(n - 1) / n` of the mean queue.
///
/// A station of several servers is taken as one server as fast as all of them together, and a delay for the
/// rest of the service time (Seidmann, Schweitzer and Shalev-Oren 1987). Both are exact with one operation
/// and in the limit of many.
///
/// The rate's error against the exact one is largest where the operations are just enough to fill the
/// servers, and is mostly on the low side. From 1024 operations on, where [`crate::mva::network`] takes it,
/// that is at most 2 %, found with a delay before one station of 1 to 512 servers. With few operations it is
/// up to 7 % with one server in each station, and up to 26 % with several: take [`crate::mva::exact`] there.
/// It never leaves the bounds.
///
/// # Errors
/// Stations that cannot be, or too many of them; no operations, or too many.
pub fn approximate(stations: &[Station], population: u32) -> Result<Load, EngineError> {
    check(stations, population)?;
    let number = f64::from(population);
    let seen = (number - 1.0) / number;
    let seconds = |rate: f64| -> Vec<f64> { stations.iter().map(|one| residence(one, rate, seen)).collect() };
    // The number of operations under way grows with the rate: between none and where the slowest station is
    // full.
    let slowest = stations.iter().filter(|one| !one.is_delay()).map(fast).fold(0.0, f64::max);
    let unhindered = number / stations.iter().map(|one| one.service_seconds).sum::<f64>();
    let (mut low, mut high) = (0.0, unhindered.min(1.0 / slowest));
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if middle * seconds(middle).iter().sum::<f64>() < number { low = middle } else { high = middle }
    }
    load(stations, population, &seconds(high), Method::Approximate)
}

/// Service time of all servers together.
fn fast(station: &Station) -> f64 {
    station.service_seconds / f64::from(station.servers)
}

/// Time at a station that is passed at this rate: the `R` of `R = s (1 + seen * rate * R)`, and the delay.
fn residence(station: &Station, rate: f64, seen: f64) -> f64 {
    if station.is_delay() {
        return station.service_seconds;
    }
    let fast = fast(station);
    fast / (1.0 - seen * rate * fast) + (station.service_seconds - fast)
}
