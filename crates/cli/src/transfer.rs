//! Progress of a transfer: to or from an archive, to a bag, to a sink or to another recorder.
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_archive::{ArchiveCounters, ArchiveError};
use keepup_report::time;
use keepup_results::format::rate;

use crate::output::{log, report_error};
use crate::progress::poll_until;

/// Default of `--connections`.
pub(crate) const CONNECTIONS: u16 = 8;
/// Updates over which the rate is taken. Large parts arrive less often than once per second.
const WINDOW: usize = 10;

/// What a transfer has done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Bytes at the destination.
    pub(crate) done_bytes: u64,
    /// Of these, bytes that an interrupted transfer had sent.
    pub(crate) known_bytes: u64,
    /// Bytes of everything to be transferred, as far as it exists.
    pub(crate) total_bytes: u64,
    /// Whether the recording is in progress, so that there will be more.
    pub(crate) is_growing: bool,
}

/// Text of the progress line of a transfer.
#[derive(Debug)]
pub(crate) struct TransferLine {
    verb: &'static str,
    /// Bytes transferred until the updates before, and the times of these since the start.
    samples: VecDeque<(u64, Duration)>,
}

impl TransferLine {
    /// Line of a transfer that begins now.
    pub(crate) fn new(verb: &'static str) -> Self {
        Self { verb, samples: VecDeque::from([(0, Duration::ZERO)]) }
    }

    /// "archived 43 %, 1.2 of 28.0 GB, 120 MB/s, 11 s left", `passed` after the last call.
    pub(crate) fn text(&mut self, amounts: Amounts, passed: Duration) -> String {
        let Amounts { done_bytes: done, known_bytes, is_growing, .. } = amounts;
        let total = amounts.total_bytes.max(done);
        let now = self.samples.back().map_or(passed, |(_, at)| *at + passed);
        let sent = done.saturating_sub(known_bytes);
        self.samples.push_back((sent, now));
        while self.samples.len() > WINDOW + 1 {
            self.samples.pop_front();
        }
        let (before, since) = self.samples.front().copied().unwrap_or((sent, now));
        let bytes_per_second = sent.saturating_sub(before) as f64 / (now - since).as_secs_f64();
        let bytes_per_second = if bytes_per_second.is_finite() { bytes_per_second } else { 0.0 };
        let seconds = (total - done) as f64 / bytes_per_second;
        let rest = match (is_growing, seconds.is_finite() && seconds >= 1.0) {
            (true, _) => ", recording in progress".to_owned(),
            (false, true) => format!(", {} left", time(seconds)),
            (false, false) => String::new(),
        };
        let percent = if total == 0 { 0 } else { (u128::from(done) * 100 / u128::from(total)) as u64 };
        let (unit, unit_bytes) = if total < 1_000_000_000 { ("MB", 1e6) } else { ("GB", 1e9) };
        let (done, total) = (done as f64 / unit_bytes, total as f64 / unit_bytes);
        let rate = rate(bytes_per_second);
        format!("{} {percent} %, {done:.1} of {total:.1} {unit}, {rate}{rest}", self.verb)
    }
}

/// Runs a transfer on a thread of its own, with warnings and a progress line. `None` if the user stopped it.
pub(crate) fn with_progress<T: Send>(
    verb: &'static str,
    live: &ArchiveCounters,
    transfer: &(dyn Fn() -> Result<T, ArchiveError> + Sync),
) -> anyhow::Result<Option<T>> {
    let warning = |what: String| format!("warning: {what}");
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(transfer);
        let mut text = TransferLine::new(verb);
        poll_until(&|| running.is_finished(), &mut |line, passed| {
            live.take_warnings().into_iter().for_each(|what| line.log(&warning(what)));
            line.show(&text.text(amounts(live), passed), passed);
        });
        running.join()
    });
    live.take_warnings().into_iter().for_each(|what| log(&warning(what)));
    match outcome.unwrap_or_else(|panic| resume_unwind(panic)) {
        Err(ArchiveError::Stopped) => {
            report_error(&ArchiveError::Stopped.into());
            Ok(None)
        }
        outcome => Ok(Some(outcome?)),
    }
}

/// What a transfer to or from an archive has done so far.
fn amounts(live: &ArchiveCounters) -> Amounts {
    Amounts {
        done_bytes: live.done_bytes.load(Ordering::Relaxed),
        known_bytes: live.known_bytes.load(Ordering::Relaxed),
        total_bytes: live.total_bytes.load(Ordering::Relaxed),
        is_growing: live.is_growing.load(Ordering::Relaxed),
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
