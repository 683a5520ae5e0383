//! Loads whose operations wait for each other: a given number is under way, and each goes from station to
//! station.
//!
//! A stream is no such load: its stages work at the same time, and [`crate::solve`] has its rate. Sources:
//! Reiser and Lavenberg, "Mean-value analysis of closed multichain queuing networks", 1980; Lazowska,
//! Zahorjan, Graham and Sevcik, "Quantitative System Performance", 1984, chapters 5, 6 and 8. Invariant:
//! every answer lies within the bounds of [`bounds`], or is an error.

mod approximate;
mod exact;
mod path;

pub use approximate::approximate;
pub use exact::exact;
pub use path::{ClosedPath, closed};

use crate::engine_error::EngineError;

/// Most operations under way that are worked out exactly; beyond it the approximation is.
pub const EXACT_POPULATION_MAX: u32 = 1024;
/// Most operations under way at all.
pub const POPULATION_MAX: u32 = 1_000_000;
/// Most stations of a network.
pub const STATIONS_MAX: usize = 64;
/// What rounding may add to a bound, as a share.
const ROUNDING: f64 = 1e-9;
const WHAT: &str = "a closed network";

/// Whether operations wait for each other at a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationKind {
    /// They wait for a free server.
    Queueing,
    /// Each takes its time there, however many there are: what lies between an answer and the next request.
    Delay,
}

/// One place that operations go to.
#[derive(Debug, Clone, PartialEq)]
pub struct Station {
    /// What it is.
    pub name: String,
    /// Time of one server for one operation, over all its visits, seconds.
    pub service_seconds: f64,
    /// Servers with one queue before them, at least 1; a delay has no use for it.
    pub servers: u32,
    /// Whether operations wait there.
    pub kind: StationKind,
}

/// How an answer came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Exact for stations that fit the theory.
    Exact,
    /// By Bard and Schweitzer, see [`approximate`] for its error.
    Approximate,
}

/// What goes on at one station.
#[derive(Debug, Clone, PartialEq)]
pub struct StationLoad {
    /// Its name.
    pub name: String,
    /// Share of its servers that are busy, 0 to 1; none for a delay.
    pub utilisation: Option<f64>,
    /// Mean number of operations there, waiting or served.
    pub queue: f64,
    /// Mean time that an operation spends there, seconds.
    pub residence_seconds: f64,
}

/// A network with so many operations under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Operations under way.
    pub population: u32,
    /// Operations per second.
    pub operations_per_second: f64,
    /// Mean time of an operation, without delays, seconds.
    pub response_seconds: f64,
    /// The stations, in their order.
    pub stations: Vec<StationLoad>,
    /// How this was worked out.
    pub method: Method,
}

/// Between which rates any network with these demands lies, operations per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Not less than this.
    pub lower: f64,
    /// Not more than this.
    pub upper: f64,
}

/// A network with so many operations under way: exact up to [`EXACT_POPULATION_MAX`], approximate beyond.
///
/// # Errors
/// Stations that cannot be, or too many of them; no operations, or too many.
pub fn network(stations: &[Station], population: u32) -> Result<Load, EngineError> {
    if population > EXACT_POPULATION_MAX {
        return approximate(stations, population);
    }
    let mut loads = exact(stations, population)?;
    loads.pop().ok_or(EngineError::Nothing { what: WHAT })
}

/// Asymptotic and balanced-job bounds (Lazowska and others, tables 5.1 and 5.2).
///
/// With several servers in a station, the lower bound follows from the same argument: who arrives finds what
/// is there, and waits at most `service / servers` for each. The upper bound is that of the network in which
/// each station has one server as fast as all of them.
///
/// # Errors
/// Stations that cannot be, or too many of them; no operations, or too many.
pub fn bounds(stations: &[Station], population: u32) -> Result<Bounds, EngineError> {
    check(stations, population)?;
    let number = f64::from(population);
    let delay: f64 = stations.iter().filter(|one| one.is_delay()).map(|one| one.service_seconds).sum();
    let queues: Vec<&Station> = stations.iter().filter(|one| !one.is_delay()).collect();
    let service: f64 = queues.iter().map(|one| one.service_seconds).sum();
    let fast: Vec<f64> = queues.iter().map(|one| one.service_seconds / f64::from(one.servers)).collect();
    let largest = fast.iter().copied().fold(0.0, f64::max);
    if service <= 0.0 {
        let rate = number / delay;
        return Ok(Bounds { lower: rate, upper: rate });
    }
    let waits = (number - 1.0) * largest / (1.0 + delay / (number * service));
    let lower = number / (delay + service + waits);
    let fast_service: f64 = fast.iter().sum();
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
        let hint = "put those together that are never waited for";
        let (number, most) = (stations.len() as u64, STATIONS_MAX as u64);
        return Err(EngineError::TooMany { what: WHAT, number, of: "stations", most, hint });
    }
    if population == 0 {
        return Err(bad("operations under way", 0.0, "number of at least 1"));
    }
    check_population(population, POPULATION_MAX, "the rate hardly changes beyond it")?;
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
    Err(EngineError::TooMany { what: WHAT, number, of: "operations under way", most, hint })
}

/// An answer of times at the stations, if it lies within the bounds.
fn load(stations: &[Station], population: u32, seconds: &[f64], method: Method) -> Result<Load, EngineError> {
    let rate = f64::from(population) / seconds.iter().sum::<f64>();
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
    Ok(Load {
        population,
        operations_per_second: rate,
        response_seconds: waited.map(|(_, seconds)| seconds).sum(),
        stations: each.collect(),
        method,
    })
}

#[cfg(test)]
#[path = "mva_tests.rs"]
mod tests;
