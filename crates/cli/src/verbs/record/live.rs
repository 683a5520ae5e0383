//! How a recording goes: the line that is redrawn, and what people must hear of at once.
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use keepup_recorder::Recorder;
use keepup_recorder::counters::Counters;

/// What was seen of a recording at the last look.
pub(super) struct Live {
    counters: Arc<Counters>,
    directories: Vec<String>,
    pool_bytes: u64,
    figures: [u64; 5],
    waited_ns: u64,
    was_waiting: bool,
    missing: u64,
    failed: Vec<bool>,
    rests: Vec<u64>,
    behind: bool,
}

impl Live {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let counters = recorder.counters();
        Self {
            directories: recorder.directories().iter().map(|d| d.display().to_string()).collect(),
            pool_bytes: recorder.pool_bytes(),
            figures: figures(&counters),
            waited_ns: 0,
            was_waiting: false,
            missing: 0,
            failed: vec![false; counters.volumes.len()],
            rests: vec![0; counters.volumes.len()],
            behind: false,
            counters,
        }
    }

    /// The line.
    pub(super) fn status(&mut self, passed: Duration) -> String {
        let now = figures(&self.counters);
        let before = std::mem::replace(&mut self.figures, now);
        let rate = |at: usize| (now[at] - before[at]) as f64 / passed.as_secs_f64() / 1e6;
        format!(
            "in {:.0} MB/s, written {:.0} MB/s, durable {:.0} MB/s, {:.2} GB so far, \
             pool {:.0} % full{}, {} connections",
            rate(0),
            rate(1),
            rate(2),
            now[2] as f64 / 1e9,
            now[3] as f64 / self.pool_bytes.max(1) as f64 * 100.0,
            room_left(self.pool_bytes.saturating_sub(now[3]), rate(0) * 1e6),
            now[4]
        )
    }

    /// What has gone wrong since the last look.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        let mut warnings = Vec::new();
        for (at, volume) in self.counters.volumes.iter().enumerate() {
            let place = self.directories.get(at).map_or("the volume", String::as_str);
            let rests = volume.rests.load(Relaxed);
            if rests > std::mem::replace(&mut self.rests[at], rests) {
                warnings
                    .push(format!("{place} does not answer; what comes goes to other volumes for a while"));
            }
            if let (Some(why), false) = (volume.failure.get(), self.failed[at]) {
                self.failed[at] = true;
                warnings.push(format!("{place} takes no data any more: {why}"));
            }
        }
        let excess: u64 = self.counters.volumes.iter().map(|v| v.keep_excess_bytes.load(Relaxed)).sum();
        if excess > 0 && !std::mem::replace(&mut self.behind, excess > 0) {
            warnings.push(format!(
                "{:.2} GB more than --keep asks for must stay: no drain has them; see keepup drain --follow",
                excess as f64 / 1e9
            ));
        }
        self.behind = excess > 0;
        let intake = &self.counters.intake;
        let waited_ns = intake.pool_wait_ns.load(Relaxed);
        let is_waiting = waited_ns > std::mem::replace(&mut self.waited_ns, waited_ns);
        if is_waiting && !std::mem::replace(&mut self.was_waiting, is_waiting) {
            warnings.push(format!(
                "all {:.0} MB of memory are full: the volumes are slower than the sources, which must wait",
                self.pool_bytes as f64 / 1e6
            ));
        }
        self.was_waiting = is_waiting;
        let missing = intake.gap_events.load(Relaxed);
        let more = missing - std::mem::replace(&mut self.missing, missing);
        if more > 0 {
            warnings.push(format!("{more} events are missing, {missing} so far"));
        }
        warnings
    }
}

/// For how long the free part of the pool bridges a stall at the present rate.
fn room_left(free_bytes: u64, rate_bytes_per_s: f64) -> String {
    let seconds = free_bytes as f64 / rate_bytes_per_s;
    if seconds.is_finite() { format!(" (room for {seconds:.1} s)") } else { String::new() }
}

/// Payload received, written, durable; pool in use; connections.
fn figures(counters: &Counters) -> [u64; 5] {
    let intake = &counters.intake;
    [
        intake.received_bytes.load(Relaxed),
        counters.written_payload_bytes(),
        counters.durable_payload_bytes(),
        intake.pool_bytes_used.load(Relaxed),
        intake.connections.load(Relaxed),
    ]
}
