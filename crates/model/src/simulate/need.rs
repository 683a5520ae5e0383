//! How large a buffer must be so that nothing is lost.

use crate::engine_error::EngineError;
use crate::simulate::{Outcome, Simulation, WHAT, WhenFull, check, simulate};

/// A buffer that is large enough.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferNeeded {
    /// The smallest first buffer with which the simulation loses nothing, bytes.
    pub bytes: f64,
    /// What comes in the longest of its stalls, bytes. More than that, by some events, is needed where stalls
    /// come before the backlog of others is gone, and for bursts and chance; less where later stages stall
    /// and have buffers of their own.
    pub single_stall_bytes: f64,
    /// From the end of that stall until its backlog alone is gone, seconds.
    pub recovery_seconds: f64,
    /// The simulation with room for everything.
    pub outcome: Outcome,
}

/// What comes during one stall, bytes: the buffer for a single stall of a path that keeps up.
#[must_use]
pub fn stall_bytes(bytes_per_second: f64, stall_seconds: f64) -> f64 {
    bytes_per_second * stall_seconds
}

/// The smallest first buffer with which a simulation loses nothing; its own first buffer does not matter.
///
/// No search is needed: up to the first loss, events pass as they would with room for everything, so the
/// largest fill with room for everything is what is needed, and one event less loses one. For stalls by
/// chance it grows with the number of events: a longer run meets rarer stalls.
///
/// # Errors
/// As [`simulate`]; and where the source sends more than the stages take in the long run, since no buffer
/// suffices.
pub fn buffer_needed(simulation: &Simulation) -> Result<BufferNeeded, EngineError> {
    check(simulation)?;
    let source = &simulation.source;
    let rate_in = source.event_bytes / source.gap_seconds_mean();
    let rate_out = long_run(simulation);
    if rate_in >= rate_out {
        return Err(EngineError::NoBufferSuffices { rate_in, rate_out });
    }
    let mut free = simulation.clone();
    free.source.when_full = WhenFull::Lose;
    let Some(first) = free.stages.first_mut() else { return Err(EngineError::Nothing { what: WHAT }) };
    first.buffer_bytes = f64::INFINITY;
    let outcome = simulate(&free)?;
    let longest = outcome.stages.iter().map(|stage| stage.stall_seconds_max).fold(0.0, f64::max);
    let single_stall_bytes = stall_bytes(rate_in, longest);
    Ok(BufferNeeded {
        bytes: outcome.stages.first().map_or(0.0, |stage| stage.fill_bytes_max),
        single_stall_bytes,
        recovery_seconds: single_stall_bytes / (rate_out - rate_in),
        outcome,
    })
}

/// What the slowest stage takes in the long run, bytes per second.
fn long_run(simulation: &Simulation) -> f64 {
    let bytes = simulation.source.event_bytes;
    let rate = simulation
        .stages
        .iter()
        .map(|stage| f64::from(stage.servers) * bytes / stage.service_seconds(bytes) * stage.working());
    rate.fold(f64::INFINITY, f64::min)
}
