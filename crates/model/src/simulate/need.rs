//! Buffer size for lossless operation.

use crate::engine_error::EngineError;
use crate::simulate::{Outcome, Simulation, WHAT, WhenFull, check, simulate};

/// A sufficient buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferNeeded {
    /// Smallest lossless first buffer, bytes.
    pub bytes: f64,
    /// Input during the longest stall, bytes. Slightly more is needed if stalls occur before the
    /// backlog of previous ones is drained, and for bursts and randomness; less if later stages
    /// stall and have their own buffers.
    pub single_stall_bytes: f64,
    /// Time from the end of that stall until its backlog is drained, seconds.
    pub recovery_seconds: f64,
    /// Simulation with an unlimited buffer.
    pub outcome: Outcome,
}

/// Input during one stall, bytes: the buffer for a single stall of a path that keeps up.
#[must_use]
pub fn stall_bytes(bytes_per_second: f64, stall_seconds: f64) -> f64 {
    bytes_per_second * stall_seconds
}

/// Smallest lossless first buffer of a simulation; its own first buffer is ignored.
///
/// No search is needed: up to the first loss, events pass as with an unlimited buffer, so its
/// maximum fill is the answer, and one event less loses one. For random stalls it grows with the
/// number of events, because longer runs contain rarer stalls.
///
/// # Errors
/// As [`simulate`]; also if the source is faster than the stages in the long run, since no buffer
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

/// Long-run rate of the slowest stage, bytes per second.
fn long_run(simulation: &Simulation) -> f64 {
    let bytes = simulation.source.event_bytes;
    let rate = simulation
        .stages
        .iter()
        .map(|stage| f64::from(stage.servers) * bytes / stage.service_seconds(bytes) * stage.working());
    rate.fold(f64::INFINITY, f64::min)
}
