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
use super::identity::Identity;
use super::kept::{Kept, Position};
use super::lane::{FleetLane, Parts};
use super::outlet::Outlet;
use super::payload::Payload;
use super::places::{Attempt, Places};
use crate::client::{Client, ClientError};
use crate::time::monotonic_ns;

/// Pause after an attempt that failed.
const PAUSE: Duration = Duration::from_millis(100);

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
        let located = match ask(&fleet.recorders, &identity.question(places.missing())) {
            Ok(located) => located,
            // Recorders that have lost contact with their fleet answer later.
            Err(error @ ClientError::TimedOut { .. }) => {
                last = error;
                continue;
            }
            Err(error) => return Err(error),
        };
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
