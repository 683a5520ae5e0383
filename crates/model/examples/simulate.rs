//! Simulations and networks of queues worked out from a list of cases in JSON on stdin, their results as a
//! list in JSON on stdout: for other programs to compare theirs with. `.ci/checks/model_oracles.py` does.
#![expect(clippy::print_stdout, reason = "an example")]

use std::error::Error;
use std::io::stdin;

use keepup_model::mva::{Station, StationKind, bounds, network};
use keepup_model::simulate::{
    Draw, Pattern, Service, Simulation, Source, Stage, Stalls, WhenFull, buffer_needed, simulate,
};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Case {
    Simulation(SimulationCase),
    /// The smallest first buffer that loses nothing.
    Buffer(SimulationCase),
    Network(NetworkCase),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulationCase {
    event_bytes: f64,
    period_seconds: f64,
    pattern: PatternCase,
    /// Whether the source waits while the first stage is full.
    waits: bool,
    stages: Vec<StageCase>,
    events: u64,
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum PatternCase {
    Regular,
    Poisson,
    Bursts { events: u32, pause_seconds: f64 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageCase {
    /// Unlimited without it.
    buffer_bytes: Option<f64>,
    bytes_per_second: f64,
    event_seconds: f64,
    is_exponential: bool,
    servers: u32,
    /// Gap and length.
    stalls: Option<(DrawCase, DrawCase)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum DrawCase {
    Fixed(f64),
    Exponential(f64),
    Measured(Vec<f64>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkCase {
    /// Service time and servers; a delay without servers.
    stations: Vec<(f64, Option<u32>)>,
    population: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let cases: Vec<Case> = serde_json::from_reader(stdin().lock())?;
    let results = cases.into_iter().map(work_out).collect::<Result<Vec<Value>, _>>()?;
    println!("{}", serde_json::to_string(&results)?);
    Ok(())
}

fn work_out(case: Case) -> Result<Value, Box<dyn Error>> {
    match case {
        Case::Simulation(case) => {
            let outcome = simulate(&simulation(case))?;
            let stage = |pick: fn(&keepup_model::simulate::StageOutcome) -> f64| -> Vec<f64> {
                outcome.stages.iter().map(pick).collect()
            };
            Ok(json!({
                "seconds": outcome.seconds,
                "rate_in": outcome.bytes_per_second_in,
                "rate_out": outcome.bytes_per_second_out,
                "events_out": outcome.events_out,
                "events_lost": outcome.events_lost,
                "dead_seconds": outcome.dead_seconds,
                "latency_mean": outcome.latency_seconds_mean,
                "latency_p99": outcome.latency_seconds_p99,
                "latency_max": outcome.latency_seconds_max,
                "fill_max": stage(|stage| stage.fill_bytes_max),
                "wait_mean": stage(|stage| stage.wait_seconds_mean),
                "utilisation": stage(|stage| stage.utilisation),
                "full_seconds": stage(|stage| stage.full_seconds),
            }))
        }
        Case::Buffer(case) => Ok(json!({ "bytes": buffer_needed(&simulation(case))?.bytes })),
        Case::Network(case) => {
            let stations: Vec<Station> = case.stations.into_iter().map(station).collect();
            let load = network(&stations, case.population)?;
            let bounds = bounds(&stations, case.population)?;
            Ok(json!({
                "rate": load.operations_per_second,
                "response": load.response_seconds,
                "queues": load.stations.iter().map(|station| station.queue).collect::<Vec<f64>>(),
                "lower": bounds.lower,
                "upper": bounds.upper,
            }))
        }
    }
}

fn station((service_seconds, servers): (f64, Option<u32>)) -> Station {
    let kind = if servers.is_some() { StationKind::Queueing } else { StationKind::Delay };
    Station { name: "station".to_owned(), service_seconds, servers: servers.unwrap_or(1), kind }
}

fn simulation(case: SimulationCase) -> Simulation {
    let pattern = match case.pattern {
        PatternCase::Regular => Pattern::Regular,
        PatternCase::Poisson => Pattern::Poisson,
        PatternCase::Bursts { events, pause_seconds } => Pattern::Bursts { events, pause_seconds },
    };
    let source = Source {
        event_bytes: case.event_bytes,
        period_seconds: case.period_seconds,
        pattern,
        when_full: if case.waits { WhenFull::Wait } else { WhenFull::Lose },
    };
    let stages = case.stages.into_iter().map(stage).collect();
    Simulation { source, stages, events: case.events, seed: case.seed }
}

fn stage(case: StageCase) -> Stage {
    Stage {
        name: "stage".to_owned(),
        buffer_bytes: case.buffer_bytes.unwrap_or(f64::INFINITY),
        bytes_per_second: case.bytes_per_second,
        event_seconds: case.event_seconds,
        service: if case.is_exponential { Service::Exponential } else { Service::Fixed },
        servers: case.servers,
        stalls: case.stalls.map(|(gap, length)| Stalls { gap: draw(gap), length: draw(length) }),
    }
}

fn draw(case: DrawCase) -> Draw {
    match case {
        DrawCase::Fixed(seconds) => Draw::Fixed(seconds),
        DrawCase::Exponential(seconds) => Draw::Exponential(seconds),
        DrawCase::Measured(seconds) => Draw::Measured(seconds),
    }
}
