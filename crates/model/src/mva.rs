//! Closed queueing networks: a fixed number of operations circulates between stations.
//!
//! A stream is different: its stages work concurrently, see [`crate::solve`]. Sources: Reiser and
//! Lavenberg, "Mean-value analysis of closed multichain queuing networks", 1980; Lazowska,
//! Zahorjan, Graham and Sevcik, "Quantitative System Performance", 1984, chapters 5, 6 and 8.
//! Invariant: every answer lies within the bounds of [`bounds`], or is an error.

mod approximate;
mod exact;
mod path;

use approximate::approximate;
pub use exact::exact;
pub use path::{ClosedPath, closed};

use keepup_measure::sum::Sums;

use crate::engine_error::EngineError;

/// Maximum number of operations for the exact solution; above it the approximation is used.
pub const EXACT_POPULATION_MAX: u32 = 1024;
/// Maximum number of operations.
pub const POPULATION_MAX: u32 = 1_000_000;
/// Maximum number of stations.
pub const STATIONS_MAX: usize = 64;
/// Rounding tolerance of a bound, as a share.
const ROUNDING: f64 = 1e-9;
const WHAT: &str = "a closed network";

/// Kind of station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationKind {
    /// Queue: operations wait for a free server.
    Queueing,
    /// Delay: no queueing, for example the time between an answer and the next request.
    Delay,
}

/// A station of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// Name.
    pub name: String,
    /// Service time of one server per operation over all visits, seconds.
    pub service_seconds: f64,
    /// Servers with a common queue, at least 1; unused for a delay.
    pub servers: u32,
    /// Kind of station.
    pub kind: StationKind,
}

/// Method of solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Exact for product-form stations.
    Exact,
    /// Bard and Schweitzer, see `mva/approximate.rs` for its error.
    Approximate,
}

/// Result for one station.
#[derive(Debug, Clone, PartialEq)]
pub struct StationLoad {
    /// Name.
    pub name: String,
    /// Utilization of its servers, 0 to 1; `None` for a delay.
    pub utilisation: Option<f64>,
    /// Mean number of operations, waiting or in service.
    pub queue: f64,
    /// Mean residence time of an operation, seconds.
    pub residence_seconds: f64,
}

/// Solution of a network for a number of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkSolution {
    /// Concurrent operations.
    pub population: u32,
    /// Operations per second.
    pub operations_per_second: f64,
    /// Mean response time of an operation without delays, seconds.
    pub response_seconds: f64,
    /// Stations in order.
    pub stations: Vec<StationLoad>,
    /// Method of solution.
    pub method: Method,
}

/// Bounds of the rate of any network with these demands, operations per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lower bound.
    pub lower: f64,
    /// Upper bound.
    pub upper: f64,
}

/// Solves a network: exactly up to [`EXACT_POPULATION_MAX`] operations, approximately beyond.
///
/// # Errors
/// Invalid stations or too many; no operations, or too many.
pub fn network(stations: &[Station], population: u32) -> Result<NetworkSolution, EngineError> {
    if population > EXACT_POPULATION_MAX {
        return approximate(stations, population);
    }
    let mut loads = exact(stations, population)?;
    loads.pop().ok_or(EngineError::Nothing { what: WHAT })
}

/// Asymptotic and balanced-job bounds (Lazowska and others, tables 5.1 and 5.2).
///
/// For stations with several servers, the lower bound uses the same argument: an arriving operation
/// waits at most `service / servers` for each one present. The upper bound is that of a network
/// with a single, equally fast server per station.
///
/// # Errors
/// Invalid stations or too many; no operations, or too many.
pub fn bounds(stations: &[Station], population: u32) -> Result<Bounds, EngineError> {
    check(stations, population)?;
    let number = f64::from(population);
    let delay: f64 = stations.iter().filter(|one| one.is_delay()).map(|one| one.service_seconds).float_sum();
    let queues: Vec<&Station> = stations.iter().filter(|one| !one.is_delay()).collect();
    let service: f64 = queues.iter().map(|one| one.service_seconds).float_sum();
    let fast: Vec<f64> = queues.iter().map(|one| one.service_seconds / f64::from(one.servers)).collect();
    let largest = fast.iter().copied().fold(0.0, f64::max);
    if service <= 0.0 {
        let rate = number / delay;
        return Ok(Bounds { lower: rate, upper: rate });
    }
    let waits = (number - 1.0) * largest / (1.0 + delay / (number * service));
    let lower = number / (delay + service + waits);
    let fast_service: f64 = fast.iter().float_sum();
    let mean = fast_service / fast.len() as f64;
    let balanced = fast_service + (number - 1.0) * mean / (1.0 + delay / fast_service);
    let upper = (1.0 / largest).min(number / (delay + service)).min(number / (delay + balanced));
    Ok(Bounds { lower, upper })
}

impl Station {
    fn is_delay(&self) -> bool {
        self.kind == StationKind::Delay
    }
}

fn check(stations: &[Station], population: u32) -> Result<(), EngineError> {
    let bad = |name: &str, value, wanted| EngineError::BadFigure {
        what: WHAT,
        name: name.to_owned(),
        value,
        wanted,
    };
    if stations.len() > STATIONS_MAX {
        let hint = "merge stations that never queue";
        let (number, most) = (stations.len() as u64, STATIONS_MAX as u64);
        return Err(EngineError::TooMany { what: WHAT, number, of: "stations", most, hint });
    }
    if population == 0 {
        return Err(bad("operations in flight", 0.0, "number of at least 1"));
    }
    check_population(
        population,
        POPULATION_MAX,
        "use fewer operations in flight: the rate hardly changes above this limit",
    )?;
    for station in stations {
        if !(station.service_seconds.is_finite() && station.service_seconds >= 0.0) {
            return Err(bad(&station.name, station.service_seconds, "service time in seconds"));
        }
        if station.servers == 0 && !station.is_delay() {
            return Err(bad(&station.name, 0.0, "number of servers of at least 1"));
        }
    }
    if stations.iter().all(|one| one.service_seconds <= 0.0) {
        return Err(EngineError::Nothing { what: WHAT });
    }
    Ok(())
}

fn check_population(population: u32, most: u32, hint: &'static str) -> Result<(), EngineError> {
    if population <= most {
        return Ok(());
    }
    let (number, most) = (u64::from(population), u64::from(most));
    Err(EngineError::TooMany { what: WHAT, number, of: "operations in flight", most, hint })
}

/// Result from the station times, if it is within the bounds.
fn load(
    stations: &[Station],
    population: u32,
    seconds: &[f64],
    method: Method,
) -> Result<NetworkSolution, EngineError> {
    let rate = f64::from(population) / seconds.iter().float_sum();
    let Bounds { lower, upper } = bounds(stations, population)?;
    if !(rate >= lower * (1.0 - ROUNDING) && rate <= upper * (1.0 + ROUNDING)) {
        return Err(EngineError::OutsideBounds {
            stations: stations.len(),
            population,
            found: rate,
            lower,
            upper,
        });
    }
    let each = stations.iter().zip(seconds).map(|(station, residence_seconds)| StationLoad {
        name: station.name.clone(),
        utilisation: (!station.is_delay())
            .then(|| rate * station.service_seconds / f64::from(station.servers)),
        queue: rate * residence_seconds,
        residence_seconds: *residence_seconds,
    });
    let waited = stations.iter().zip(seconds).filter(|(station, _)| !station.is_delay());
    Ok(NetworkSolution {
        population,
        operations_per_second: rate,
        response_seconds: waited.map(|(_, seconds)| seconds).float_sum(),
        stations: each.collect(),
        method,
    })
}

#[cfg(test)]
#[path = "mva_tests.rs"]
mod tests;
