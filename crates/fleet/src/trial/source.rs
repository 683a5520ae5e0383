//! Part of a source: it serves recorders, as `keepup source --serve` does.
use std::sync::Arc;

use keepup_peer::Endpoint;
use keepup_workload::net::{Listening, ServerSettings};

use super::plan::SourcePlan;
use super::setting::{Setting, text};
use crate::host::Done;
use crate::part::PartControl;

/// Serves until the part is to end; returns an empty result.
pub(super) fn serve(plan: &SourcePlan, setting: &Setting, control: &PartControl) -> Result<String, String> {
    let listen: Endpoint = plan.listen.parse().map_err(|error| format!("{}: {error}", plan.listen))?;
    let settings = limits(plan.recorders);
    let (clock, stop) = (Arc::clone(&setting.clock), control.stop_flag());
    let server = Listening::bind(&listen, setting.credentials.clone(), settings, clock, stop)
        .map_err(|error| text(&error))?;
    control.report(Done::Prepared { run: control.run, address: Some(server.address()) });
    // Its log lines are about clients, which the controller knows.
    server.serve(|_| ());
    Ok(String::new())
}

/// Limits for so many recorders: each has a session, and all connect at one time.
fn limits(recorders: u32) -> ServerSettings {
    let default = ServerSettings::default();
    let with_reserve = recorders.saturating_mul(2);
    ServerSettings {
        sources: recorders,
        sessions: default.sessions.saturating_add(with_reserve),
        pending: default.pending.saturating_add(with_reserve),
        ..default
    }
}
