//! Progress of a transfer to or from an archive.
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_archive::{ArchiveCounters, ArchiveError};
use keepup_report::time;
use keepup_results::format::rate;

use crate::output::{log, report_error};
use crate::progress::poll_until;

/// Default of `--connections`.
pub(crate) const CONNECTIONS: u16 = 8;

/// Runs a transfer on a thread of its own, with warnings and a progress line. `None` if the user stopped it.
pub(crate) fn with_progress<T: Send>(
    verb: &str,
    live: &ArchiveCounters,
    transfer: &(dyn Fn() -> Result<T, ArchiveError> + Sync),
) -> anyhow::Result<Option<T>> {
    let warning = |what: String| format!("warning: {what}");
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(transfer);
        let mut done_before = live.done_bytes.load(Ordering::Relaxed);
        poll_until(&|| running.is_finished(), &mut |line, passed| {
            live.take_warnings().into_iter().for_each(|what| line.log(&warning(what)));
            line.show(&status(verb, live, &mut done_before, passed), passed);
        });
        running.join()
    });
    live.take_warnings().into_iter().for_each(|what| log(&warning(what)));
    match outcome.map_err(|_| anyhow::anyhow!("cannot transfer: the thread panicked"))? {
        Err(ArchiveError::Stopped) => {
            report_error(&ArchiveError::Stopped.into());
            Ok(None)
        }
        outcome => Ok(Some(outcome?)),
    }
}

/// "archived 43 %, 1.2 of 28.0 GB, 120 MB/s, 11 s left"
fn status(verb: &str, live: &ArchiveCounters, done_before: &mut u64, passed: Duration) -> String {
    let done = live.done_bytes.load(Ordering::Relaxed);
    let total = live.total_bytes.load(Ordering::Relaxed).max(done);
    let sent = done.saturating_sub(std::mem::replace(done_before, done));
    let bytes_per_second = sent as f64 / passed.as_secs_f64();
    let seconds = (total - done) as f64 / bytes_per_second;
    let left = if seconds.is_finite() { format!(", {} left", time(seconds)) } else { String::new() };
    let percent = if total == 0 { 0 } else { (u128::from(done) * 100 / u128::from(total)) as u64 };
    let (done, total) = (done as f64 / 1e9, total as f64 / 1e9);
    format!("{verb} {percent} %, {done:.1} of {total:.1} GB, {}{left}", rate(bytes_per_second))
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
