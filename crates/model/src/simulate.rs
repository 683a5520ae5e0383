//! Discrete-event simulation for questions beyond averages: buffers against stalls, loss, dead
//! time, bursts.
//!
//! A source sends events of one size through a chain of stages; each has a buffer and servers, and
//! may stall. An event occupies a stage's buffer from its arrival until it has left the stage, like
//! a block of the pool. Nothing is lost between stages: a server keeps its event until the next
//! buffer has space. Invariants: the same [`Simulation`] gives the same [`Outcome`]; time is
//! counted in integer picoseconds; events, steps and time are bounded.

mod chain;
mod draw;
mod need;

pub use draw::Draw;
pub use need::{BufferNeeded, buffer_needed, stall_bytes};

use crate::engine_error::EngineError;

/// Maximum number of events.
pub const EVENTS_MAX: u64 = 4_000_000;
/// Maximum number of stages.
pub const STAGES_MAX: usize = 32;
/// Maximum number of servers per stage.
pub const SERVERS_MAX: u32 = 4096;
/// Maximum gap, stall or service time, or its mean, seconds.
pub const SECONDS_MAX: f64 = 1e4;
const WHAT: &str = "a simulation";

/// Schedule of events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Periodic.
    Regular,
    /// Periodic within bursts, followed by pauses.
    Bursts {
        /// Events per burst, at least 1.
        events: u32,
        /// From the last event of a burst to the first of the next, seconds.
        pause_seconds: f64,
    },
    /// Poisson process with this mean period.
    Poisson,
}

/// Behaviour when the first buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The event is lost.
    Lose,
    /// The source waits; its next event is due one gap after this one was accepted.
    Wait,
}

/// Source of events.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Event size, bytes.
    pub event_bytes: f64,
    /// Period, seconds.
    pub period_seconds: f64,
    /// Schedule.
    pub pattern: Pattern,
    /// Behaviour when the first buffer is full.
    pub when_full: WhenFull,
}

/// Distribution of the service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Constant.
    Fixed,
    /// Exponential with the given mean.
    Exponential,
}

/// Repeated stalls of a stage; work in progress continues afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Stalls {
    /// Time from the end of a stall, or the start, to the next one, seconds.
    pub gap: Draw,
    /// Length of each stall, seconds.
    pub length: Draw,
}

/// A buffer with servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Name.
    pub name: String,
    /// Buffer size for waiting and served events, bytes; may be infinite.
    pub buffer_bytes: f64,
    /// Rate per server, bytes per second; may be infinite.
    pub bytes_per_second: f64,
    /// Additional time per event, seconds.
    pub event_seconds: f64,
    /// Distribution of the service time.
    pub service: Service,
    /// Servers, at least 1.
    pub servers: u32,
    /// Stalls.
    pub stalls: Option<Stalls>,
}

/// Input of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// Source.
    pub source: Source,
    /// Stages in order.
    pub stages: Vec<Stage>,
    /// Number of events; the simulation ends when the last one has left.
    pub events: u64,
    /// Random seed.
    pub seed: u64,
}

/// Result of one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageOutcome {
    /// Name.
    pub name: String,
    /// Mean utilization of its servers, 0 to 1.
    pub utilisation: f64,
    /// Mean waiting time of an event before service, seconds.
    pub wait_seconds_mean: f64,
    /// Maximum buffer usage, bytes.
    pub fill_bytes_max: f64,
    /// Time with a full buffer, seconds.
    pub full_seconds: f64,
    /// Number of stalls.
    pub stalls: u64,
    /// Total stall time, seconds.
    pub stalled_seconds: f64,
    /// Longest stall, seconds.
    pub stall_seconds_max: f64,
}

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Time until the last event had left, seconds.
    pub seconds: f64,
    /// Offered rate while the source was active, lost events included, bytes per second.
    pub bytes_per_second_in: f64,
    /// Output rate of the last stage over the whole time, bytes per second.
    pub bytes_per_second_out: f64,
    /// Delivered events.
    pub events_out: u64,
    /// Lost events.
    pub events_lost: u64,
    /// Their size, bytes.
    pub bytes_lost: f64,
    /// Dead time of the source, blocked or with a full first buffer, seconds.
    pub dead_seconds: f64,
    /// Mean latency from due time to leaving the last stage, seconds.
    pub latency_seconds_mean: f64,
    /// 99th percentile of the latency, seconds.
    pub latency_seconds_p99: f64,
    /// Maximum latency, seconds.
    pub latency_seconds_max: f64,
    /// Stages in order.
    pub stages: Vec<StageOutcome>,
}

/// Runs a simulation.
///
/// # Errors
/// Invalid figures, or too many events, stages, servers, steps or seconds.
pub fn simulate(simulation: &Simulation) -> Result<Outcome, EngineError> {
    check(simulation)?;
    chain::run(simulation)
}

impl Source {
    /// Mean period, seconds.
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
    /// Mean service time of one server per event, seconds.
    fn service_seconds(&self, event_bytes: f64) -> f64 {
        event_bytes / self.bytes_per_second + self.event_seconds
    }

    /// Buffer capacity in events.
    fn slots(&self, event_bytes: f64) -> f64 {
        // Sizes that are multiples except for rounding count as multiples.
        (self.buffer_bytes / event_bytes * (1.0 + 1e-12)).floor()
    }

    /// Share of time without stalls, 0 to 1.
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
        "buffer of at least one event, in bytes",
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
