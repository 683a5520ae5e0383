//! A line on stderr that tells how it goes: redrawn on a terminal, a new one every ten seconds elsewhere.
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use keepup_measure::clock::{Clock, SystemClock};
use keepup_results::printable;

use crate::output::{may_redraw, say};

/// Pause between two lines where nothing can be redrawn.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// Pause between two updates of the line.
const SHOW_EVERY: Duration = Duration::from_secs(1);
/// Pause between two looks whether it is over, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// The line.
pub(crate) struct Status {
    bar: Option<ProgressBar>,
    since_last: Duration,
}

impl Status {
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

    /// Shows `text`; `passed` is the time since the last call.
    pub(crate) fn show(&mut self, text: &str, passed: Duration) {
        self.since_last += passed;
        match &self.bar {
            Some(bar) => bar.set_message(printable::one_line(text)),
            None if self.since_last >= PLAIN_EVERY => {
                self.since_last = Duration::ZERO;
                say(text);
            }
            None => {}
        }
    }

    /// Prints a line that stays.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say(text)),
            None => say(text),
        }
    }
}

/// Looks at something each second until `is_ended`; `look` is given the line to show what it sees, and the
/// time since the last look.
pub(crate) fn watch(is_ended: &dyn Fn() -> bool, look: &mut dyn FnMut(&mut Status, Duration)) {
    let clock = SystemClock;
    let mut status = Status::new();
    let mut last_ns = clock.now_ns();
    while !is_ended() {
        let now_ns = clock.now_ns();
        let passed = Duration::from_nanos(now_ns - last_ns);
        if passed >= SHOW_EVERY {
            look(&mut status, passed);
            last_ns = now_ns;
        }
        clock.sleep_until_ns(now_ns + LOOK_NS);
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
