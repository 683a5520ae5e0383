//! Notifications for systemd: ready, stopping, and watchdog keep-alives while the recorder works.
//!
//! Without a service manager (`NOTIFY_SOCKET`) nothing is sent.
use std::path::Path;

use anyhow::Context as _;
use sd_notify::NotifyState;

/// Keep-alives are sent every 1/SHARE of the watchdog timeout.
const SHARE: u64 = 3;

/// Notifier of the service manager.
pub(super) struct ServiceNotifier {
    watchdog: Option<Watchdog>,
    is_stopping: bool,
}

impl ServiceNotifier {
    /// Reads the watchdog timeout from the environment.
    pub(super) fn new() -> Self {
        let limit_ns = sd_notify::watchdog_enabled().map(|limit| limit.as_nanos() as u64);
        Self { watchdog: limit_ns.map(Watchdog::new), is_stopping: false }
    }

    /// Reports that sources can connect or commands are accepted: to the service manager, and by the file
    /// that was asked for, which appears with its contents.
    pub(super) fn ready(&self, file: Option<&Path>) -> anyhow::Result<()> {
        if let Some(file) = file {
            let mut new = file.as_os_str().to_owned();
            new.push(".new");
            let written = std::fs::write(&new, format!("{}\n", std::process::id()));
            let written = written.and_then(|()| std::fs::rename(&new, file));
            written.with_context(|| format!("cannot create ready file {}", file.display()))?;
        }
        notify(NotifyState::Ready);
        Ok(())
    }

    /// Reports that the process is stopping.
    pub(super) fn stopping(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            notify(NotifyState::Stopping);
        }
    }

    /// Sends a keep-alive if one is due. `intakes_ns` has a counter for each intake thread, which increases
    /// it while it works; empty without a recorder.
    pub(super) fn keep_alive(&mut self, now_ns: u64, intakes_ns: Vec<u64>) {
        if self.watchdog.as_mut().is_some_and(|watchdog| watchdog.is_due(now_ns, intakes_ns)) {
            notify(NotifyState::Watchdog);
        }
    }
}

/// Notifies the service manager. An error must not end a recording.
fn notify(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// Schedule of watchdog keep-alives.
struct Watchdog {
    every_ns: u64,
    sent_ns: Option<u64>,
    intakes_ns: Vec<u64>,
}

impl Watchdog {
    fn new(limit_ns: u64) -> Self {
        Self { every_ns: limit_ns / SHARE, sent_ns: None, intakes_ns: Vec::new() }
    }

    /// Whether a keep-alive is due and every intake has worked since the last one.
    fn is_due(&mut self, now_ns: u64, intakes_ns: Vec<u64>) -> bool {
        let is_time = self.sent_ns.is_none_or(|sent| now_ns.saturating_sub(sent) >= self.every_ns);
        let is_stuck = intakes_ns.iter().zip(&self.intakes_ns).any(|(now, before)| now == before);
        if !is_time || is_stuck {
            return false;
        }
        (self.sent_ns, self.intakes_ns) = (Some(now_ns), intakes_ns);
        true
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
