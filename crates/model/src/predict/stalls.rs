//! Memory for stalls: single stalls by arithmetic, repeated stalls by simulation.

use keepup_results::PredictedBuffer;

use super::Ask;
use crate::engine_error::EngineError;
use crate::error::ModelError;
use crate::machine::Machine;
use crate::simulate::{
    Draw, Pattern, Service, Simulation, Source, Stage, Stalls as Stalling, WhenFull, buffer_needed, simulate,
    stall_bytes,
};

/// Number of simulated stalls, since backlogs of several may overlap.
const STALLS: f64 = 50.0;
/// Maximum number of events; above it, one event stands for several.
const EVENTS_MAX: f64 = 500_000.0;

/// Input and output rate of one host, bytes per second.
pub(super) struct Stalls {
    pub(super) incoming: f64,
    pub(super) rate: f64,
    pub(super) operation_bytes: f64,
}

impl Stalls {
    /// The requested stalls and those of the machine.
    pub(super) fn buffers(&self, machine: &Machine, ask: &Ask) -> Result<Vec<PredictedBuffer>, ModelError> {
        let stalls = ask.stall_seconds.iter().copied().chain(machine.stall_seconds());
        stalls.map(|stall_seconds| self.buffer(stall_seconds, ask)).collect()
    }

    fn buffer(&self, stall_seconds: f64, ask: &Ask) -> Result<PredictedBuffer, ModelError> {
        let bytes = stall_bytes(self.incoming, stall_seconds);
        let left = self.rate - self.incoming;
        let mut buffer = PredictedBuffer {
            bytes_per_second: self.incoming,
            stall_seconds,
            bytes,
            recovery_seconds: (left > 0.0).then(|| bytes / left),
            every_seconds: ask.stall_every_seconds,
            repeated_bytes: None,
            given_bytes: ask.buffer_bytes,
            lost_share: None,
        };
        if let Some(every_seconds) = ask.stall_every_seconds {
            match buffer_needed(&self.simulation(stall_seconds, every_seconds, f64::INFINITY)) {
                Ok(needed) => buffer.repeated_bytes = Some(needed.bytes),
                Err(EngineError::NoBufferSuffices { .. }) => {}
                Err(why) => return Err(why.into()),
            }
        }
        if let Some(given) = ask.buffer_bytes {
            // A single stall is simulated as repeated at a long interval.
            let alone = 2.0 * buffer.recovery_seconds.unwrap_or(stall_seconds);
            let every_seconds = ask.stall_every_seconds.unwrap_or(alone);
            let outcome = simulate(&self.simulation(stall_seconds, every_seconds, given))?;
            let events = outcome.events_out + outcome.events_lost;
            buffer.lost_share = (events > 0).then(|| outcome.events_lost as f64 / events as f64);
        }
        Ok(buffer)
    }

    fn simulation(&self, stall_seconds: f64, every_seconds: f64, buffer_bytes: f64) -> Simulation {
        let seconds = STALLS * (stall_seconds + every_seconds);
        let event_bytes = self.operation_bytes.max(self.incoming * seconds / EVENTS_MAX);
        Simulation {
            source: Source {
                event_bytes,
                period_seconds: event_bytes / self.incoming,
                pattern: Pattern::Regular,
                when_full: WhenFull::Lose,
            },
            stages: vec![Stage {
                name: "the path".to_owned(),
                buffer_bytes,
                bytes_per_second: self.rate,
                event_seconds: 0.0,
                service: Service::Fixed,
                servers: 1,
                stalls: Some(Stalling {
                    gap: Draw::Fixed(every_seconds),
                    length: Draw::Fixed(stall_seconds),
                }),
            }],
            events: ((seconds * self.incoming / event_bytes) as u64).max(1),
            seed: 1,
        }
    }
}
