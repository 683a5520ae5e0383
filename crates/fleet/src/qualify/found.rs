//! What a qualification of a fleet is asked for, and what its search finds.
use std::time::Duration;

use keepup_plan::Profile;
use keepup_qualify::search::{End, Outcome, TrialOutcome};

use super::combine::Part;

/// What is qualified, and how.
#[derive(Clone, Debug)]
pub struct QualifySettings {
    /// The detector, with all streams.
    pub profile: Profile,
    /// Short search.
    pub quick: bool,
    /// Soak time, if not the default.
    pub soak: Option<Duration>,
    /// Limit of bytes written, over all volumes and trials.
    pub write_bytes_max: u64,
    /// Drop sealed blocks instead of writing them.
    pub to_null: bool,
    /// Measure each recorder alone, too.
    pub each: bool,
}

/// A trial of which every recorder has a result.
#[derive(Clone, Debug)]
pub(super) struct Tried {
    pub(super) parts: Vec<Part>,
    pub(super) outcome: TrialOutcome,
}

/// Results of a search.
pub(super) struct Found {
    pub(super) saturated: Option<Tried>,
    pub(super) outcome: Outcome,
    /// The trials of `outcome`, in the same order.
    pub(super) tried: Vec<Tried>,
    /// Broken recording or damaged data, with the host.
    pub(super) fault: Option<String>,
    /// Highest rate of the search, bytes per second.
    pub(super) max_rate: f64,
    /// Why there was no search.
    pub(super) unsearched: Option<String>,
}

impl Found {
    /// Nothing was found.
    pub(super) fn nothing() -> Self {
        let end = End::Interrupted;
        let outcome = Outcome {
            knee: None,
            second_knee: None,
            qualified_rate: None,
            soak: None,
            slower: None,
            end,
            trials: Vec::new(),
        };
        Self { saturated: None, outcome, tried: Vec::new(), fault: None, max_rate: 0.0, unsearched: None }
    }
}

/// Payload of all recorders together that the fullest of them can take, bytes.
pub(super) fn usable_bytes(parts: &[Part]) -> f64 {
    let each = parts.iter().filter_map(|part| Some(part.of_all(part.outcome.usable_bytes?)));
    each.fold(f64::INFINITY, f64::min)
}
