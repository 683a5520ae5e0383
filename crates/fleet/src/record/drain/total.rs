//! Result of a drain host.
use keepup_results::format::{bytes, plural};
use serde::Serialize;

use super::sinks::CopyOutcome;
use crate::controller::PartEnd;

/// Result of a drain host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DrainResult {
    /// Name of the host.
    pub host: String,
    /// Its copies; none if it has no result.
    pub copies: Vec<CopyOutcome>,
    /// Why it has none.
    pub failure: Option<String>,
}

impl DrainResult {
    /// A drain host whose part has not ended.
    #[must_use]
    pub fn new(host: &str) -> Self {
        let failure = Some("the end of the run was not reported".to_owned());
        Self { host: host.to_owned(), copies: Vec::new(), failure }
    }

    /// Enters the end of its part.
    pub fn enter(&mut self, end: &PartEnd) {
        let parsed = match end {
            PartEnd::Finished(text) => {
                serde_json::from_str(text).map_err(|error| format!("malformed result: {error}"))
            }
            _ => Err(end.failure().unwrap_or_default()),
        };
        (self.copies, self.failure) = match parsed {
            Ok(copies) => (copies, None),
            Err(why) => (Vec::new(), Some(why)),
        };
    }

    /// Whether it has ended its copies, and they have no defects.
    pub(crate) fn is_whole(&self) -> bool {
        self.failure.is_none() && self.copies.iter().all(|copy| copy.is_whole)
    }

    /// What it has, in lines.
    pub(crate) fn lines(&self) -> String {
        if let Some(why) = &self.failure {
            return format!("{}: {why}\n", self.host);
        }
        let sum = |of: fn(&CopyOutcome) -> u64| self.copies.iter().map(of).fold(0, u64::saturating_add);
        let mut lines = format!(
            "{}: {}, {}, copied from {}\n",
            self.host,
            plural(sum(|copy| copy.durable_events), "event"),
            bytes(sum(|copy| copy.durable_bytes)),
            plural(self.copies.len() as u64, "recorder"),
        );
        for copy in &self.copies {
            for incident in &copy.incidents {
                lines.push_str(&format!("{}: {}: {incident}\n", self.host, copy.name));
            }
        }
        lines
    }
}
