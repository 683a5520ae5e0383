//! Assumptions of the findings, for the user.

use std::path::PathBuf;

use keepup_plan::units::{ByteRate, Bytes, Span};
use keepup_workload::doctor::Readings;
use keepup_workload::preflight::common_disks;

use super::Needs;

/// Assumptions of the findings.
pub fn notes(needs: &Needs, readings: &Readings, volumes: &[PathBuf]) -> Vec<String> {
    let rate = |rate| ByteRate::new(rate).map_or_else(|e| e.to_string(), |rate: ByteRate| rate.to_string());
    let profile = match &needs.profile {
        Some(name) => format!("judged for {name}"),
        None => "no profile given: judged for a single stream".into(),
    };
    let burst = match needs.peak > needs.rate {
        true => format!(", {} in bursts", rate(needs.peak)),
        false => String::new(),
    };
    let plural = if needs.connections == 1 { "" } else { "s" };
    let mut notes = vec![format!(
        "{profile}: {}{burst}, by {}, {} connection{plural}, events of {}, stalls of up to {}",
        rate(needs.rate),
        needs.transport_name(),
        needs.connections,
        Bytes(needs.event_bytes as u64),
        Span(needs.stall)
    )];
    match needs.is_networked() {
        true => notes.extend(
            readings.chosen.as_ref().map(|why| format!("interface {why}; --interface selects others")),
        ),
        false => notes.push("no data arrives over the network, so it is not checked".into()),
    }
    if readings.settings.volumes.is_empty() {
        notes.push("no disk is checked; --volume DIR selects one".into());
    }
    notes.extend(common_disks(volumes));
    notes
}
