//! What systemd is told: that it listens, that it ends, and, for the watchdog, that the recorder is at work.
//!
//! Without a service manager (`NOTIFY_SOCKET`) nothing is told to anybody.
use sd_notify::NotifyState;

/// Of the time after which the watchdog ends a service that said nothing, it hears this part at the latest.
const SHARE: u64 = 3;

/// The service manager's view of this process.
pub(super) struct Service {
    pulse: Option<Pulse>,
    is_stopping: bool,
}

impl Service {
    /// Asks the environment whether a watchdog waits.
    pub(super) fn new() -> Self {
        let limit_ns = sd_notify::watchdog_enabled().map(|limit| limit.as_nanos() as u64);
        Self { pulse: limit_ns.map(Pulse::new), is_stopping: false }
    }

    /// Sources can connect, or commands are taken.
    pub(super) fn ready(&self) {
        tell(NotifyState::Ready);
    }

    /// It was asked to end.
    pub(super) fn stopping(&mut self) {
        if !std::mem::replace(&mut self.is_stopping, true) {
            tell(NotifyState::Stopping);
        }
    }

    /// Called on each turn of run control. `intake_ns` is a figure that the intake thread of the recorder,
    /// where there is one, raises on each of its turns.
    pub(super) fn turned(&mut self, now_ns: u64, intake_ns: Option<u64>) {
        if self.pulse.as_mut().is_some_and(|pulse| pulse.is_due(now_ns, intake_ns)) {
            tell(NotifyState::Watchdog);
        }
    }
}

/// Tells the service manager. One that does not listen is no reason to end a recording.
fn tell(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// When the watchdog is to hear of it.
struct Pulse {
    every_ns: u64,
    told_ns: Option<u64>,
    intake_ns: Option<u64>,
}

impl Pulse {
    fn new(limit_ns: u64) -> Self {
        Self { every_ns: limit_ns / SHARE, told_ns: None, intake_ns: None }
    }

    /// Whether it is time to tell, and the intake has made a turn since it was last told.
    fn is_due(&mut self, now_ns: u64, intake_ns: Option<u64>) -> bool {
        let is_time = self.told_ns.is_none_or(|told| now_ns.saturating_sub(told) >= self.every_ns);
        let stands_still = intake_ns.is_some() && intake_ns == self.intake_ns;
        if !is_time || stands_still {
            return false;
        }
        (self.told_ns, self.intake_ns) = (Some(now_ns), intake_ns);
        true
    }
}

#[cfg(test)]
#[path = "service_tests.rs"]
mod tests;
