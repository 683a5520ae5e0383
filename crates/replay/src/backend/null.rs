//! Nothing is done: what is left is the engine's own cost and time.
use std::time::Duration;

use keepup_trace::Record;

use super::{Done, Target};
use crate::error::ReplayError;

/// Ends every request at once.
#[derive(Debug, Default)]
pub(crate) struct NullTarget {
    started: Vec<usize>,
}

impl Target for NullTarget {
    fn start(&mut self, _record: &Record, _index: usize, token: usize) -> Result<bool, ReplayError> {
        self.started.push(token);
        Ok(true)
    }

    fn wait(&mut self, timeout: Duration, done: &mut Vec<Done>) -> Result<(), ReplayError> {
        if self.started.is_empty() {
            std::thread::sleep(timeout);
        }
        done.extend(self.started.drain(..).map(|token| Done { token, result: Ok(()) }));
        Ok(())
    }
}
