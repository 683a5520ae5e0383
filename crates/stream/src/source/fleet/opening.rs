//! First connections of a connection group, before the schedule starts.
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::super::frontend::FrontEnd;
use super::super::lane::{Pace, Shared};
use super::super::plan::SourcePlan;
use super::Fleet;
use super::errands::{CONNECT_TIMEOUT, ask};
use super::kept::{Kept, Position};
use super::lane::{FleetLane, Parts};
use super::outlet::Outlet;
use super::payload::Payload;
use super::places::{Attempt, Places};
use crate::client::{Client, ClientError};
use crate::time::monotonic_ns;
use crate::wire::{FrameKind, Hello, Locate, Welcome, WireError};

/// Pause after an attempt that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// What recorders are told about a connection group.
pub(super) struct Identity {
    hello: Hello,
    event_bytes_max: u64,
}

impl Identity {
    fn new(plan: &SourcePlan, connection: u32, resume: &str) -> Self {
        let mut hello = plan.hello(connection);
        hello.resume = Some(resume.to_owned());
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

/// Finds the recorders of the streams of a connection group and connects to them. Waits while a stream has
/// no recorder.
///
/// # Errors
/// No recorder can be asked, or one of them refuses; a stream has no recorder for `fleet.patience`; stopped.
pub(in super::super) fn open<'a>(
    plan: &SourcePlan,
    connection: u32,
    fleet: &'a Fleet,
    shared: Shared<'a>,
    (resume, lateness_ns): (&str, Histogram<u64>),
) -> Result<FleetLane<'a>, ClientError> {
    let identity = Identity::new(plan, connection, resume);
    let mut places = Places::new(identity.ids());
    let (mut outlets, mut last) = (Vec::new(), ClientError::Stopped);
    let begin_ns = monotonic_ns();
    // Times are 0: the schedule starts later.
    while let Some(&stream) = places.missing().first() {
        if shared.stop.load(Relaxed) {
            return Err(ClientError::Stopped);
        }
        if Duration::from_nanos(monotonic_ns() - begin_ns) > fleet.patience {
            return Err(ClientError::NoRecorder { stream, waited: fleet.patience, last: Box::new(last) });
        }
        let located = ask(&fleet.recorders, &identity.question(places.missing()))?;
        let attempts = places.located(&located, 0).open;
        if attempts.is_empty() {
            last = ClientError::Unassigned { stream };
        }
        for attempt in attempts {
            match connect(&identity, &attempt) {
                Ok(client) => {
                    let number = outlets.len() as u64;
                    places.connected(&attempt.slots, number, attempt.address, 0);
                    outlets.push(Outlet::new(number, attempt.address, attempt.slots, client, 0));
                }
                Err(error) => {
                    places.failed(&attempt, 0);
                    last = error;
                }
            }
        }
        if !places.is_settled() {
            thread::sleep(PAUSE);
        }
    }
    let ids = identity.ids();
    let (kept, first_sequences) = first_positions(&ids, &outlets)?;
    let pace = Pace::new(shared, FrontEnd::new(plan, None, connection, &first_sequences));
    let payload = Payload::new(plan.seed ^ u64::from(connection));
    let parts = Parts { shared, fleet, identity, pace, kept, places, payload, outlets, lateness_ns };
    Ok(FleetLane::new(parts))
}

/// The streams at the positions of the welcomes, and the first sequence number of each.
fn first_positions(ids: &[u32], outlets: &[Outlet]) -> Result<(Kept, Vec<u64>), ClientError> {
    let mut first_sequences = vec![0; ids.len()];
    let positions = outlets.iter().flat_map(Outlet::positions);
    positions.for_each(|(slot, position)| first_sequences[slot] = position.next_sequence);
    let mut kept = Kept::new(ids.iter().copied().zip(first_sequences.iter().copied()));
    for outlet in outlets {
        let positions: Vec<(usize, Position)> = outlet.positions().collect();
        kept.attach(outlet.number, outlet.address, &positions, 0)?;
    }
    Ok((kept, first_sequences))
}

fn connect(identity: &Identity, attempt: &Attempt) -> Result<Client, ClientError> {
    let (client, welcome) =
        Client::connect(attempt.address, &identity.hello(&attempt.slots), CONNECT_TIMEOUT)?;
    identity.check(&welcome)?;
    Ok(client)
}
