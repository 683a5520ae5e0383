//! Judges a trial: schedule, loss, backlog, durability, drain. The first failed condition is named.
//! Pure.
use std::time::Duration;

use keepup_results::TrialResult;
use keepup_workload::record::{Sample, TrialMeasured, longest_stall};

use crate::search::{Phase, TrialOutcome, backlog_grows};

/// Minimum share of the requested rate for a source that kept up.
const SCHEDULE_SHARE: f64 = 0.98;
/// Share of time blocked above which the source counts as throttled, not as slow.
const BLOCKED_SHARE: f64 = 0.1;
/// A network wait of this share of the time bridged by the source's buffer may explain its losses.
const OVERFLOW_SHARE: f64 = 0.5;
/// Deadline for durability after the end of the source.
const DURABLE_WITHIN: Duration = Duration::from_secs(5);
/// Minimum share of the drain's rate.
pub(crate) const DRAIN_SHARE: f64 = 0.9;
/// Tolerance for blocks in flight, bytes.
const DRAIN_SLACK_BYTES: f64 = 4e6;
/// Time at the start of a trial in which a drain cannot have data yet, seconds: one flush and one
/// journal poll.
const DRAIN_START_S: f64 = 1.0;

/// Requested parameters of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialRequest {
    /// Rate in bytes per second; none: unthrottled.
    pub rate: Option<f64>,
    /// Duration.
    pub duration: Duration,
    /// Requested drain rate.
    pub drain_rate: Option<f64>,
}

/// Outcome of a trial for the search.
pub fn outcome(asked: &TrialRequest, measured: &TrialMeasured, elapsed_s: f64) -> TrialOutcome {
    let duration_s = measured.source.elapsed_ns as f64 / 1e9;
    let due = measured.source.total(|s| s.due);
    let sent = measured.source.total(|s| s.sent);
    let rate = asked.rate.unwrap_or(f64::INFINITY);
    let offered_rate = sent.bytes as f64 / duration_s.max(1e-9);
    let buffer_bytes = buffer_bytes(measured);
    let backlog_growing = asked.rate.is_some() && grows(asked, measured);
    let is_overloaded = backlog_growing || lost_events(measured) > 0;
    TrialOutcome {
        duration_s: duration_s.min(asked.duration.as_secs_f64()),
        clean_s: clean_seconds(measured, duration_s),
        elapsed_s,
        bytes: measured.record.ledger.total().received.bytes as f64,
        offered_events: due.events,
        lost_events: lost_events(measured),
        backlog_growing,
        longest_stall: longest_stall(&measured.samples),
        buffer: asked.rate.map(|rate| Duration::from_secs_f64((buffer_bytes / rate.max(1.0)).min(1e6))),
        achieved_rate: achieved_rate(is_overloaded, duration_s, measured),
        offered_rate,
        failed: late(measured).or_else(|| drain_behind(asked, measured)).or_else(|| damaged(measured)),
        generator_limited: generator_limited(rate, duration_s, backlog_growing, measured),
    }
}

/// What came through, bytes per second: all that arrived, but under overload what was written, because
/// buffers that fill up take more than the path carries.
fn achieved_rate(is_overloaded: bool, duration_s: f64, measured: &TrialMeasured) -> f64 {
    let received = measured.received_bytes_per_second();
    let written = written_rate(&measured.samples, duration_s + measured.lead_ns as f64 / 1e9);
    written.filter(|_| is_overloaded).map_or(received, |written| written.min(received))
}

/// Rate of the writes from the first one to `end_s`, bytes per second; none if there were too few.
fn written_rate(samples: &[Sample], end_s: f64) -> Option<f64> {
    let mut writing = samples.iter().filter(|sample| sample.written_bytes > 0 && sample.t_s <= end_s);
    let (first, last) = (writing.next()?, writing.next_back()?);
    Some(last.written_bytes.saturating_sub(first.written_bytes) as f64 / (last.t_s - first.t_s))
}

/// Events lost at the source or later.
pub fn lost_events(measured: &TrialMeasured) -> u64 {
    let total = measured.record.ledger.total();
    let due = measured.source.total(|s| s.due);
    due.events.saturating_sub(total.durable.events)
}

/// Time up to the first loss, seconds: that of the last sample without one. A loss that no sample shows,
/// after the source, may be at the start.
fn clean_seconds(measured: &TrialMeasured, duration_s: f64) -> f64 {
    if lost_events(measured) == 0 {
        return duration_s;
    }
    let clean = measured.samples.iter().take_while(|sample| sample.lost_bytes == 0).last();
    let is_seen = measured.samples.iter().any(|sample| sample.lost_bytes > 0);
    let at_s = clean.filter(|_| is_seen).map_or(0.0, |sample| sample.t_s - measured.lead_ns as f64 / 1e9);
    at_s.clamp(0.0, duration_s)
}

fn grows(asked: &TrialRequest, measured: &TrialMeasured) -> bool {
    // After the end of a source that was cut off the backlog only falls.
    let end_s = asked.duration.as_secs_f64().min(measured.source.elapsed_ns as f64 / 1e9);
    let offered: Vec<(f64, f64)> = measured.backlog().into_iter().filter(|(t, _)| *t <= end_s).collect();
    backlog_grows(&offered, asked.rate.unwrap_or(0.0))
}

/// Bytes of a stall that buffers can absorb: the source's own buffer plus the recorder's pool.
fn buffer_bytes(measured: &TrialMeasured) -> f64 {
    measured.record.pool_bytes as f64 + measured.source_buffer_bytes as f64
}

/// Whether the source itself was too slow: it missed its rate or its buffer overflowed without
/// being blocked long enough to explain that.
fn generator_limited(rate: f64, duration_s: f64, grows: bool, measured: &TrialMeasured) -> bool {
    if !rate.is_finite() {
        return false;
    }
    let source = &measured.source;
    let buffer_s = measured.source_buffer_bytes as f64 / rate;
    let held_long = source.longest_blocked_ns as f64 / 1e9 >= OVERFLOW_SHARE * buffer_s;
    let sent_bytes = source.total(|s| s.sent).bytes as f64;
    let short = sent_bytes < SCHEDULE_SHARE * rate * duration_s;
    let fell_behind = source.total(|s| s.lost).events > 0 || (grows && waits_at_source(&measured.samples));
    !is_throttled(measured) && (short || (fell_behind && !held_long))
}

/// Whether the path throttled the source: its threads were blocked on their connections, so they
/// could have sent more.
pub fn is_throttled(measured: &TrialMeasured) -> bool {
    let source = &measured.source;
    let blocked = source.blocked_ns as f64 / (source.elapsed_ns.max(1) as f64);
    blocked / f64::from(measured.source_threads.max(1)) > BLOCKED_SHARE
}

/// Whether most of the final backlog is in the source.
fn waits_at_source(samples: &[Sample]) -> bool {
    samples.last().is_some_and(|last| {
        let at_source = last.due_bytes.saturating_sub(last.lost_bytes + last.sent_bytes);
        at_source > last.sent_bytes.saturating_sub(last.written_bytes)
    })
}

fn late(measured: &TrialMeasured) -> Option<String> {
    let after_ns = measured.elapsed_ns.saturating_sub(measured.source.elapsed_ns);
    (u128::from(after_ns) > DURABLE_WITHIN.as_nanos())
        .then(|| format!("durable only {:.1} s after the last event", after_ns as f64 / 1e9))
}

/// What a concurrent drain did. The first second counts on neither side.
struct Drained {
    /// Length of that time, seconds; negative for a trial shorter than a second.
    time_s: f64,
    /// Bytes that it could take.
    available_bytes: u64,
    /// Bytes that it took.
    bytes: u64,
}

fn drained(samples: &[Sample]) -> Option<Drained> {
    let last = samples.last()?;
    let time_s = last.t_s - DRAIN_START_S;
    let at = |time_s: f64| samples.iter().rev().find(|s| s.t_s <= time_s);
    let before = at(DRAIN_START_S).map_or(0, |s| s.drained_bytes);
    let available_bytes = at(time_s).map_or(0, |s| s.stored_bytes.saturating_sub(before));
    Some(Drained { time_s, available_bytes, bytes: last.drained_bytes.saturating_sub(before) })
}

/// Rate that a concurrent drain reached, payload bytes per second; `None` if the trial was too short to
/// measure it, or had nothing to drain.
pub fn drain_rate(samples: &[Sample]) -> Option<f64> {
    let found = drained(samples)?;
    let is_measured = found.time_s >= DRAIN_START_S && found.available_bytes > 0;
    is_measured.then(|| found.bytes as f64 / found.time_s)
}

/// Failed condition of the concurrent drain, if any.
pub fn drain_behind(asked: &TrialRequest, measured: &TrialMeasured) -> Option<String> {
    let rate = asked.drain_rate?;
    let Drained { time_s, available_bytes, bytes } = drained(&measured.samples)?;
    let owed = (rate * time_s).min(available_bytes as f64);
    let drained = bytes as f64;
    // A difference of a few blocks is no evidence.
    (drained <= DRAIN_SHARE * owed - DRAIN_SLACK_BYTES).then(|| {
        format!("the drain fell behind: {:.1} MB/s of {:.1} MB/s", drained / time_s / 1e6, rate / 1e6)
    })
}

fn damaged(measured: &TrialMeasured) -> Option<String> {
    let report = measured.verify.as_ref()?;
    (!report.is_intact()).then(|| {
        let first = report.faults.first().map_or_else(String::new, |f| format!(", first: {}", f.what));
        format!("{} faults found by verification{first}", report.fault_count)
    })
}

/// The trial as stored in the result.
pub fn result(
    phase: Phase,
    asked: &TrialRequest,
    measured: &TrialMeasured,
    outcome: &TrialOutcome,
) -> TrialResult {
    let (failed, received) = (first_failed(outcome), measured.received_bytes_per_second());
    let gb = measured.record.ledger.total().received.bytes as f64 / 1e9;
    TrialResult {
        phase: phase.to_string(),
        asked_bytes_per_second: asked.rate.unwrap_or(received),
        seconds: outcome.duration_s,
        achieved_bytes_per_second: received,
        durable_bytes_per_second: measured.durable_bytes_per_second(),
        lost_events: outcome.lost_events,
        backlog_growing: outcome.backlog_growing,
        passed: failed.is_none(),
        failed_condition: failed,
        backlog_bytes_max: Some(measured.backlog_bytes_max()),
        stall_ms_max: outcome.longest_stall.map(|s| s.as_secs_f64() * 1e3),
        buffer_seconds: outcome.buffer.map(|b| b.as_secs_f64()),
        cpu_seconds_per_gb: (gb > 0.0).then(|| measured.recorder_cpu_ns as f64 / 1e9 / gb),
        load_rates: Vec::new(),
    }
}

/// First failed condition, in words.
pub fn first_failed(outcome: &TrialOutcome) -> Option<String> {
    if outcome.generator_limited {
        return Some("the source did not keep its schedule".into());
    }
    if outcome.lost_events > 0 {
        return Some("events were lost".into());
    }
    if outcome.backlog_growing {
        return Some("the backlog grew".into());
    }
    outcome.failed.clone()
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
