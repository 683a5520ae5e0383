//! Runs that follow each other, one for each series of the detectors.
use std::sync::Arc;

use keepup_error::Cause;
use keepup_recorder::{RecorderConfig, SeriesConnections};

use crate::exit::usage;

/// Number of series to record; `None`: until stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeriesCount(Option<u64>);

/// Parses a number of series, or "all".
pub(super) fn series(text: &str) -> Result<SeriesCount, String> {
    if text == "all" {
        return Ok(SeriesCount(None));
    }
    let count = text.parse().ok().filter(|count| *count > 0);
    count.map(|count| SeriesCount(Some(count))).ok_or_else(|| "expected a positive number or \"all\"".into())
}

/// The runs that follow.
#[derive(Default)]
pub(crate) struct SeriesChain {
    connections: Option<Arc<SeriesConnections>>,
    /// Runs after the current one; `None`: any number.
    left: Option<u64>,
    has_followed: bool,
}

impl SeriesChain {
    /// Runs for `count` series; several share the connections to the detectors.
    pub(super) fn new(count: SeriesCount, config: &mut RecorderConfig) -> anyhow::Result<Self> {
        let left = count.0.map(|count| count - 1);
        if left == Some(0) {
            return Ok(Self { connections: None, left, has_followed: false });
        }
        if config.sources.is_empty() || !config.sources.iter().all(|source| source.has_series()) {
            let why = Cause::new("cannot use --series: a source does not send series");
            return Err(usage(why.with_hint("--from zmq://HOST, with no source of another kind")));
        }
        let connections = Arc::new(SeriesConnections::default());
        config.series = Some(Arc::clone(&connections));
        Ok(Self { connections: Some(connections), left, has_followed: false })
    }

    /// Whether another run follows; call it between two runs.
    pub(super) fn advance(&mut self) -> bool {
        let Some(connections) = &self.connections else { return false };
        match &mut self.left {
            Some(0) => return false,
            Some(left) => {
                *left -= 1;
                if *left == 0 {
                    connections.end();
                }
            }
            None => {}
        }
        self.has_followed = true;
        true
    }

    /// Whether a run followed another one.
    pub(super) fn has_followed(&self) -> bool {
        self.has_followed
    }
}
