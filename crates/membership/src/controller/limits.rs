//! Limits on what the controller keeps of a heartbeat, which comes from the network and may be 1 MB long.
use std::collections::BTreeMap;

use keepup_results::printable::one_line;

use crate::message::Health;

/// Most warnings of a host.
const WARNINGS_MAX: usize = 16;
/// Most causes of missing events, and reasons of rejected data.
const CAUSES_MAX: usize = 16;
/// Most volumes of a host, as in a fleet file.
const VOLUMES_MAX: usize = 64;

/// The part of a host's health that is kept. Texts are limited to one line.
pub(super) fn limited(health: &Health) -> Health {
    // Copies, because the vectors of the message have its capacity.
    Health {
        missing: limited_causes(&health.missing),
        rejected: limited_causes(&health.rejected),
        foreign: limited_causes(&health.foreign),
        warnings: health.warnings.iter().take(WARNINGS_MAX).map(|text| one_line(text)).collect(),
        volumes: health.volumes.iter().take(VOLUMES_MAX).copied().collect(),
        ..*health
    }
}

/// Missing events by cause or rejected data by reason, with the first ones only.
#[must_use]
pub fn limited_causes(counts: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    counts.iter().take(CAUSES_MAX).map(|(cause, count)| (one_line(cause), *count)).collect()
}
