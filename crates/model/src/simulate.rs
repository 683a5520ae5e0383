//! What averages cannot say: buffers against stalls, loss, dead time, bursts. A small simulation of single
//! events.
//!
//! A source sends events of one size into a chain of stages; each has a buffer and servers, and may stall. An
//! event takes its place in a stage's buffer from when it comes until it has left the stage, as a block of
//! the pool does. Between stages nothing is lost: a server keeps its event until the next buffer has room.
//! Invariants: the same [`Simulation`] gives the same [`Outcome`]; time is counted in whole picoseconds;
//! events, steps and time are bounded.

mod chain;
mod draw;
mod need;

pub use draw::Draw;
pub use need::{BufferNeeded, buffer_needed, stall_bytes};

use crate::engine_error::EngineError;

/// Most events of one simulation.
pub const EVENTS_MAX: u64 = 4_000_000;
/// Most stages of one chain.
pub const STAGES_MAX: usize = 32;
/// Most servers of one stage.
pub const SERVERS_MAX: u32 = 4096;
/// Longest gap, stall or service time, or its mean, seconds.
pub const SECONDS_MAX: f64 = 1e4;
const WHAT: &str = "a simulation";

/// When events are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// One each period.
    Regular,
    /// One each period until a burst is complete, then nothing.
    Bursts {
        /// Events of a burst, at least 1.
        events: u32,
        /// From the last event of a burst to the first of the next, seconds.
        pause_seconds: f64,
    },
    /// By chance, on average one each period.
    Poisson,
}

/// What happens to an event that finds the first buffer full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It is lost.
    Lose,
    /// It waits in the source, which sends nothing meanwhile: its next event is due one gap after this one
    /// was taken.
    Wait,
}

/// What sends.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Size of an event, bytes.
    pub event_bytes: f64,
    /// From one event to the next, seconds.
    pub period_seconds: f64,
    /// When within that.
    pub pattern: Pattern,
    /// What happens when there is no room.
    pub when_full: WhenFull,
}

/// How long a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Always the same.
    Fixed,
    /// By chance with an exponential distribution, the given time on average.
    Exponential,
}

/// Times in which a stage does nothing; what it has begun goes on afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Stalls {
    /// From the end of a stall, or the beginning of all, to the next, seconds.
    pub gap: Draw,
    /// How long each is, seconds.
    pub length: Draw,
}

/// A buffer with servers behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// What it is.
    pub name: String,
    /// Room for events that wait or are served, bytes; may be infinite.
    pub buffer_bytes: f64,
    /// What each server passes on, bytes per second; may be infinite.
    pub bytes_per_second: f64,
    /// What each event costs besides, seconds.
    pub event_seconds: f64,
    /// How much chance is in that.
    pub service: Service,
    /// Servers, at least 1.
    pub servers: u32,
    /// When it stands still.
    pub stalls: Option<Stalls>,
}

/// All that a simulation needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// What sends.
    pub source: Source,
    /// What the events go through, in this order.
    pub stages: Vec<Stage>,
    /// Events that the source has due; the simulation ends when the last one has left.
    pub events: u64,
    /// Chance: the same seed, the same outcome.
    pub seed: u64,
}

/// What went on in one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageOutcome {
    /// Its name.
    pub name: String,
    /// Share of the time that a server worked, mean over servers, 0 to 1.
    pub utilisation: f64,
    /// Mean time of an event between coming and the beginning of its service, seconds.
    pub wait_seconds_mean: f64,
    /// Most that was in the buffer, bytes.
    pub fill_bytes_max: f64,
    /// Time without room for another event, seconds.
    pub full_seconds: f64,
    /// Stalls that began.
    pub stalls: u64,
    /// Time in stalls, seconds.
    pub stalled_seconds: f64,
    /// The longest stall, seconds.
    pub stall_seconds_max: f64,
}

/// What became of the events.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// From the beginning until the last event had left, seconds.
    pub seconds: f64,
    /// What the source had to send, lost or not, while it sent, bytes per second.
    pub bytes_per_second_in: f64,
    /// What left the last stage, over all of the time, bytes per second.
    pub bytes_per_second_out: f64,
    /// Events that left the last stage.
    pub events_out: u64,
    /// Events that found no room.
    pub events_lost: u64,
    /// Their size, bytes.
    pub bytes_lost: f64,
    /// Time in which the source could not send: held back, or without room in the first buffer; seconds.
    pub dead_seconds: f64,
    /// Mean time from when an event was due until it had left the last stage, seconds.
    pub latency_seconds_mean: f64,
    /// What 99 % of them were not above, seconds.
    pub latency_seconds_p99: f64,
    /// The longest, seconds.
    pub latency_seconds_max: f64,
    /// The stages, in their order.
    pub stages: Vec<StageOutcome>,
}

/// Sends all events of a simulation through its stages.
///
/// # Errors
/// Figures that cannot be; more events, stages, servers, steps or seconds than are simulated.
pub fn simulate(simulation: &Simulation) -> Result<Outcome, EngineError> {
    check(simulation)?;
    chain::run(simulation)
}

impl Source {
    /// Mean time from one event to the next, seconds.
    fn gap_seconds_mean(&self) -> f64 {
        match self.pattern {
            Pattern::Regular | Pattern::Poisson => self.period_seconds,
            Pattern::Bursts { events, pause_seconds } => {
                let events = f64::from(events);
                (self.period_seconds * (events - 1.0) + pause_seconds) / events
            }
        }
    }
}

impl Stage {
    /// Mean time of one server for an event, seconds.
    fn service_seconds(&self, event_bytes: f64) -> f64 {
        event_bytes / self.bytes_per_second + self.event_seconds
    }

    /// Events that have room.
    fn slots(&self, event_bytes: f64) -> f64 {
        // Sizes that are multiples but for rounding count as such.
        (self.buffer_bytes / event_bytes * (1.0 + 1e-12)).floor()
    }

    /// Share of the time that it does not stall, 0 to 1.
    fn working(&self) -> f64 {
        let Some(stalls) = &self.stalls else { return 1.0 };
        let (gap, length) = (stalls.gap.mean(), stalls.length.mean());
        gap / (gap + length)
    }
}

fn check(simulation: &Simulation) -> Result<(), EngineError> {
    let Simulation { source, stages, events, .. } = simulation;
    if *events == 0 || stages.is_empty() {
        return Err(EngineError::Nothing { what: WHAT });
    }
    too_many(*events, "events", EVENTS_MAX, "fewer events give the same mean with a larger error")?;
    too_many(stages.len() as u64, "stages", STAGES_MAX as u64, "join stages that never are the slowest")?;
    let bytes = source.event_bytes;
    figure("events", bytes, bytes.is_finite() && bytes > 0.0, "size in bytes")?;
    seconds("the source's period", source.period_seconds)?;
    if let Pattern::Bursts { events, pause_seconds } = source.pattern {
        figure("a burst", f64::from(events), events > 0, "number of events of at least 1")?;
        seconds("the source's pause", pause_seconds)?;
    }
    let gap = source.gap_seconds_mean();
    figure("the source", gap, gap > 0.0, "time between events above 0")?;
    stages.iter().try_for_each(|stage| check_stage(stage, bytes))
}

fn check_stage(stage: &Stage, event_bytes: f64) -> Result<(), EngineError> {
    let name = &stage.name;
    figure(
        name,
        stage.buffer_bytes,
        stage.slots(event_bytes) >= 1.0,
        "buffer with room for an event, in bytes",
    )?;
    figure(name, stage.bytes_per_second, stage.bytes_per_second > 0.0, "rate in bytes per second")?;
    seconds(name, stage.event_seconds)?;
    let service = stage.service_seconds(event_bytes);
    seconds(name, service)?;
    figure(name, service, service >= 1e-9, "time for an event of at least 1 ns")?;
    figure(name, f64::from(stage.servers), stage.servers > 0, "number of servers of at least 1")?;
    too_many(u64::from(stage.servers), "servers", u64::from(SERVERS_MAX), "fewer, faster ones come close")?;
    let Some(stalls) = &stage.stalls else { return Ok(()) };
    for draw in [&stalls.gap, &stalls.length] {
        draw.values().iter().try_for_each(|value| seconds(name, *value))?;
    }
    let gap = stalls.gap.mean();
    figure(name, gap, gap > 0.0, "time between stalls above 0")?;
    figure(name, stalls.length.mean(), !stalls.length.values().is_empty(), "length of stalls")
}

fn figure(name: &str, value: f64, is_good: bool, wanted: &'static str) -> Result<(), EngineError> {
    if is_good {
        Ok(())
    } else {
        Err(EngineError::BadFigure { what: WHAT, name: name.to_owned(), value, wanted })
    }
}

fn seconds(name: &str, value: f64) -> Result<(), EngineError> {
    figure(name, value, (0.0..=SECONDS_MAX).contains(&value), "time from 0 to 10000 s")
}

fn too_many(number: u64, of: &'static str, most: u64, hint: &'static str) -> Result<(), EngineError> {
    if number <= most { Ok(()) } else { Err(EngineError::TooMany { what: WHAT, number, of, most, hint }) }
}

#[cfg(test)]
#[path = "simulate_tests.rs"]
mod tests;
