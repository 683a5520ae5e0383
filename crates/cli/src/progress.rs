//! Progress line on stderr: redrawn on a terminal, printed every ten seconds elsewhere.
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use keepup_measure::clock::{Clock, SystemClock};
use keepup_report::time;
use keepup_results::format::rate as transfer_rate;
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

/// Progress of reading `total` bytes, of which `before` were done at the start, `seconds` ago: "read 1.2 of
/// 28.0 GB, 2.41 GB/s, 11 s left".
pub(crate) fn reading(done: u64, total: u64, before: u64, seconds: f64) -> String {
    let rate = done.saturating_sub(before) as f64 / seconds.max(1e-9);
    let left = total.saturating_sub(done) as f64 / rate;
    let left = match left.is_finite() {
        true => format!(", {} left", time(left)),
        false => String::new(),
    };
    format!("read {:.1} of {:.1} GB, {}{left}", done as f64 / 1e9, total as f64 / 1e9, transfer_rate(rate))
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
