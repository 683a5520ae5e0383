//! Data that a decoder rejects, until the recorder takes the account of them.
use keepup_stream::rejected::{RejectReason, RejectUnit, Rejection};

/// Rejected data of one source: at most one row for each reason and unit.
#[derive(Debug, Default)]
pub(crate) struct Rejects {
    rows: Vec<Rejection>,
}

impl Rejects {
    /// Counts one; `why` is kept of the first one of its kind.
    pub(crate) fn add(&mut self, reason: RejectReason, unit: RejectUnit, why: impl Into<String>) {
        match self.rows.iter_mut().find(|row| (row.reason, row.unit) == (reason, unit)) {
            Some(row) => row.count = row.count.saturating_add(1),
            None => {
                let (sender, is_foreign, detail) = (None, false, why.into());
                self.rows.push(Rejection { sender, reason, unit, count: 1, is_foreign, detail });
            }
        }
    }

    /// What was rejected since the last call.
    pub(crate) fn take(&mut self) -> Vec<Rejection> {
        std::mem::take(&mut self.rows)
    }
}
