//! Progress line on stderr: redrawn on a terminal, printed every ten seconds elsewhere.
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use keepup_measure::clock::{Clock, SystemClock};
use keepup_recording::progress::Progress;
use keepup_report::time;
use keepup_results::format::rate;
use keepup_results::printable;

use crate::output::{log, may_redraw};

/// Interval between lines when stderr is not a terminal.
const PRINT_EVERY: Duration = Duration::from_secs(10);
/// Interval between updates of the line.
const UPDATE_EVERY: Duration = Duration::from_secs(1);
/// Interval at which the end is checked, in nanoseconds.
const POLL_NS: u64 = 50_000_000;

/// Progress line.
pub(crate) struct StatusLine {
    bar: Option<ProgressBar>,
    since_last: Duration,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        let bar = may_redraw().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or(ProgressStyle::default_spinner()),
            );
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, since_last: Duration::ZERO }
    }

    /// Updates the line; `passed` is the time since the last call.
    pub(crate) fn show(&mut self, text: &str, passed: Duration) {
        self.since_last += passed;
        match &self.bar {
            Some(bar) => bar.set_message(printable::one_line(text)),
            None if self.since_last >= PRINT_EVERY => {
                self.since_last = Duration::ZERO;
                log(text);
            }
            None => {}
        }
    }

    /// Logs a message above the progress line.
    pub(crate) fn log(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| log(text)),
            None => log(text),
        }
    }
}

/// Progress line of a command that reads a recording, from several threads.
pub(crate) struct ReadingLine {
    status: Mutex<StatusLine>,
    begin_ns: u64,
    last_ns: AtomicU64,
}

impl ReadingLine {
    pub(crate) fn new() -> Self {
        let begin_ns = SystemClock.now_ns();
        Self { status: Mutex::new(StatusLine::new()), begin_ns, last_ns: AtomicU64::new(begin_ns) }
    }

    /// Updates the line, once per second.
    pub(crate) fn show(&self, progress: Progress) {
        let (now_ns, before_ns) = (SystemClock.now_ns(), self.last_ns.load(Ordering::Relaxed));
        if now_ns.saturating_sub(before_ns) < UPDATE_EVERY.as_nanos() as u64 {
            return;
        }
        let claimed = self.last_ns.compare_exchange(before_ns, now_ns, Ordering::Relaxed, Ordering::Relaxed);
        if let (Ok(_), Ok(mut status)) = (claimed, self.status.try_lock()) {
            let seconds = now_ns.saturating_sub(self.begin_ns) as f64 / 1e9;
            status.show(&reading(progress, seconds), UPDATE_EVERY);
        }
    }
}

/// "read 1.2 of 28.0 GB, 2.41 GB/s, 11 s left", after `seconds`.
fn reading(progress: Progress, seconds: f64) -> String {
    let Progress { done_bytes, known_bytes, total_bytes } = progress;
    let bytes_per_second = done_bytes.saturating_sub(known_bytes) as f64 / seconds.max(1e-9);
    let left = total_bytes.saturating_sub(done_bytes) as f64 / bytes_per_second;
    let left = if left.is_finite() { format!(", {} left", time(left)) } else { String::new() };
    let (done, total) = (done_bytes as f64 / 1e9, total_bytes as f64 / 1e9);
    format!("read {done:.1} of {total:.1} GB, {}{left}", rate(bytes_per_second))
}

/// Calls `update` every second until `is_ended`, with the progress line and the time since the last call.
pub(crate) fn poll_until(is_ended: &dyn Fn() -> bool, update: &mut dyn FnMut(&mut StatusLine, Duration)) {
    let clock = SystemClock;
    let mut status = StatusLine::new();
    let mut last_ns = clock.now_ns();
    while !is_ended() {
        let now_ns = clock.now_ns();
        let passed = Duration::from_nanos(now_ns - last_ns);
        if passed >= UPDATE_EVERY {
            update(&mut status, passed);
            last_ns = now_ns;
        }
        clock.sleep_until_ns(now_ns + POLL_NS);
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
