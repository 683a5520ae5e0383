//! Messages by which a connection group introduces itself. Pure.
use super::super::plan::SourcePlan;
use crate::client::ClientError;
use crate::wire::{FrameKind, Hello, Locate, Welcome, WireError};

/// What recorders get to know about a connection group.
pub(super) struct Identity {
    hello: Hello,
    event_bytes_max: u64,
}

impl Identity {
    pub(super) fn new(plan: &SourcePlan, connection: u32, resume: &str) -> Self {
        let mut hello = plan.hello(connection);
        hello.resume = Some(resume.to_owned());
        // They are at several recorders.
        hello.client_streams = None;
        Self { hello, event_bytes_max: plan.size.max_bytes() }
    }

    /// Ids of the streams, in order of their slots.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.hello.streams.iter().map(|stream| stream.id).collect()
    }

    /// Question for the recorders of streams.
    pub(super) fn question(&self, streams: Vec<u32>) -> Locate {
        Locate::new(&self.hello.client, streams)
    }

    /// Hello of a connection with the streams `slots`, without their positions.
    pub(super) fn hello(&self, slots: &[usize]) -> Hello {
        let streams = slots.iter().map(|&slot| self.hello.streams[slot].clone()).collect();
        Hello { streams, ..self.hello.clone() }
    }

    /// Checks that a recorder takes events of the size.
    pub(super) fn check(&self, welcome: &Welcome) -> Result<(), ClientError> {
        let (bytes, bytes_max) = (self.event_bytes_max, welcome.max_event_bytes);
        match bytes > bytes_max {
            true => Err(WireError::TooLong { kind: FrameKind::Event, bytes, bytes_max }.into()),
            false => Ok(()),
        }
    }
}
