//! Writes until the rate of the volumes is steady, before the search.
//!
//! A disk's fast cache makes short trials faster than a run of hours. Rounds at full speed, without a pause,
//! fill it.
use keepup_measure::stats::steady_window;
use keepup_results::SteadyState;

use super::{Request, Session};
use crate::QualifyError;
use crate::run_time::ROUNDS_MAX;
use crate::trial_run::TrialRun;

/// Share of the byte limit for the rounds; the rest is for search and soak.
const SHARE: f64 = 0.4;

impl Session<'_> {
    /// Runs rounds until the last five are steady, the bytes for them are written, or the run is stopped.
    /// Returns the last round.
    pub(super) fn until_steady(&mut self) -> Result<(TrialRun, SteadyState), QualifyError> {
        let duration = self.settings.lengths().steady_round;
        let budget = self.bytes_left() * SHARE;
        let written_before = self.bytes_written;
        let mut rounds = Vec::new();
        loop {
            let label = "until steady".to_owned();
            let left = budget - (self.bytes_written - written_before) as f64;
            let round = self.trial(&Request::unverified(label, None, duration, left))?;
            rounds.push(round.measured.durable_bytes_per_second());
            let bytes = self.bytes_written - written_before;
            let is_steady = steady_window(&rounds).is_some_and(|window| window.is_steady());
            let per_round = bytes as f64 / rounds.len() as f64;
            let is_over = bytes as f64 + per_round > budget || rounds.len() >= ROUNDS_MAX;
            if is_steady || is_over || self.is_stopped() || round.broken().is_some() {
                let round_seconds = duration.as_secs_f64();
                let state =
                    SteadyState { reached: is_steady, round_seconds, bytes, bytes_per_second: rounds };
                return Ok((round, state));
            }
        }
    }
}
