//! Conversion of a trial's measurements to results: ledger, CPU cost, stalls.
use std::collections::BTreeMap;
use std::time::Duration;

use keepup_measure::cpu::CoreUsage;
use keepup_measure::sum::Sums;
use keepup_recorder::{PlacementKind, Target};
use keepup_results::{
    Count, CpuCost, Engine, IoEngine, LedgerSummary, RecordFirst, RecordMoment, RecordPlacement, RecordRun,
    ThreadCpu,
};
use keepup_stream::ledger::{Count as LedgerCount, LossCause};

use super::first::{First, Moment};
use super::{ReadFrom, Sample, TrialMeasured, TrialSpec};

fn count(count: LedgerCount) -> Count {
    Count { events: count.events, bytes: count.bytes }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Longest time with due but no written bytes.
pub fn longest_stall(samples: &[Sample]) -> Option<Duration> {
    let first = samples.first()?;
    let (mut longest_s, mut since_s, mut written) = (0.0f64, first.t_s, first.written_bytes);
    for sample in samples {
        if sample.written_bytes != written || sample.backlog_bytes() == 0 {
            (since_s, written) = (sample.t_s, sample.written_bytes);
        }
        longest_s = longest_s.max(sample.t_s - since_s);
    }
    Some(Duration::from_secs_f64(longest_s))
}

impl TrialMeasured {
    /// Ledger of all events.
    pub fn ledger(&self) -> LedgerSummary {
        let total = self.record.ledger.total();
        let (due, sent) = (self.source.total(|s| s.due), self.source.total(|s| s.sent));
        let lost = due - total.durable;
        let lost_at_source = self.source.total(|s| s.lost);
        let after = lost - lost_at_source;
        let mut lost_by_cause = BTreeMap::new();
        if lost_at_source.events > 0 {
            lost_by_cause.insert("lost at source".to_owned(), count(lost_at_source));
        }
        if after.events > 0 {
            let causes: Vec<String> =
                total.gap_events.keys().filter(|c| c.is_after_receipt()).map(|c| c.to_string()).collect();
            let cause = match causes.is_empty() {
                // What the kernel dropped behind the last packet that arrived has no entry.
                true if total.gap_events.contains_key(&LossCause::SocketBuffer) => {
                    LossCause::SocketBuffer.to_string()
                }
                true if total.gap_events.get(&LossCause::FileUnreadable) == Some(&after.events) => {
                    LossCause::FileUnreadable.to_string()
                }
                true => "not received".to_owned(),
                false => causes.join(", "),
            };
            lost_by_cause.insert(cause, count(after));
        }
        let verified = self.verify.as_ref().map(|report| {
            let streams = report.streams.values();
            let recorded = streams.clone().fold(LedgerCount::default(), |sum, s| sum + s.recorded);
            let damaged: u64 = streams.map(|s| s.damaged_events).saturating_sum();
            Count { events: recorded.events - damaged.min(recorded.events), bytes: recorded.bytes }
        });
        LedgerSummary {
            sent: count(sent),
            lost_at_source: count(lost_at_source),
            received: count(total.received),
            written: count(total.written),
            durable: count(total.durable),
            stored: total.reduced.map(|_| count(self.record.ledger.stored())),
            verified,
            unread_segments: self.verify.as_ref().map_or(0, |report| report.unread_segments),
            drained: self.drained(),
            lost: count(lost),
            lost_by_cause,
        }
    }

    /// Events of the source that the drain delivered; unknown if it was stopped amid lines of an index.
    fn drained(&self) -> Option<Count> {
        let (drain, index) = (self.drain.as_ref()?, self.index_durable);
        let is_known = drain.is_complete || index.events == 0;
        is_known.then(|| Count {
            events: drain.durable.events.saturating_sub(index.events),
            bytes: drain.durable.bytes.saturating_sub(index.bytes),
        })
    }

    /// CPU cost.
    pub fn cpu(&self) -> CpuCost {
        let record = &self.record;
        let received = record.ledger.total().received.bytes as f64 / 1e9;
        let sent = self.source.total(|s| s.sent).bytes as f64 / 1e9;
        let cores = &self.cores;
        let mean = |of: fn(&CoreUsage) -> f64| {
            (!cores.is_empty()).then(|| cores.iter().map(of).float_sum() / cores.len() as f64)
        };
        CpuCost {
            seconds_per_gb: (received > 0.0).then(|| seconds(self.recorder_cpu_ns) / received),
            drain_seconds_per_gb: (self.drain_cpu_ns.filter(|_| received > 0.0))
                .map(|ns| seconds(ns) / received),
            source_seconds_per_gb: (sent > 0.0).then(|| seconds(self.source_cpu_ns) / sent),
            per_core_percent: cores.iter().map(|core| core.busy_percent).collect(),
            softirq_percent: mean(|core| core.softirq_percent),
            steal_percent: mean(|core| core.steal_percent),
            recorder_threads: record
                .threads()
                .map(|thread| ThreadCpu {
                    name: thread.name.clone(),
                    seconds: seconds(thread.cpu_ns),
                    run_delay_seconds: thread.run_delay_ns.map(seconds),
                })
                .collect(),
        }
    }

    /// I/O engine used.
    pub fn engine(&self) -> Engine {
        let volume = self.record.volumes.first();
        let is_plain = volume.is_some_and(|v| v.engine == "pwrite");
        let access = volume.map_or("", |v| v.access.as_str());
        let buffers = volume.map_or("", |v| v.buffers.as_str());
        Engine {
            io: if is_plain { IoEngine::Pwrite } else { IoEngine::IoUring },
            buffers: format!("{buffers}, {access}"),
        }
    }

    /// Reason why the recording was aborted or is incomplete.
    pub fn broken_off(&self) -> Option<String> {
        match self.record.ended.failure() {
            Some(why) => Some(format!("recording aborted: {why}")),
            None => self.broken.clone().or_else(|| {
                let rejected = self.record.rejected.iter().find(|_| self.record.has_rejected());
                let trouble = self.record.trouble.first().cloned().or(rejected.map(ToString::to_string));
                trouble.map(|what| format!("the recording is incomplete: {what}"))
            }),
        }
    }

    /// Result of a run with `spec`, for which `asked_bytes_per_second` were requested (none:
    /// unthrottled). The caller adds the repeat number, start time and background loads.
    pub fn run(&self, spec: &TrialSpec, asked_bytes_per_second: Option<f64>) -> RecordRun {
        let (volumes, to_null) = match &spec.recorder.target {
            Target::Volumes(volumes) => (volumes.iter().map(|v| v.display().to_string()).collect(), false),
            Target::Null => (Vec::new(), true),
        };
        let total = self.record.ledger.total();
        let scheduled = self.elapsed_ns.saturating_sub(self.lead_ns);
        let per_second = |bytes: u64, ns: u64| bytes as f64 / seconds(ns.max(1));
        let incidents = self.record.incidents.listed.iter().cloned();
        let notes = self.record.volumes.iter().filter_map(|volume| volume.note.clone());
        let cached =
            self.read_from.as_ref().filter(|from| **from != ReadFrom::Disks).map(ToString::to_string);
        let files = match &spec.recorder.target {
            Target::Volumes(volumes) => spec.generator.file_store().map(|store| store.describe(volumes)),
            Target::Null => spec.generator.file_store().map(|store| store.describe(&[])),
        };
        RecordRun {
            volumes,
            repeat: 1,
            begin_seconds: 0.0,
            asked_bytes_per_second,
            streams: spec.source.streams,
            connections: spec.source.connections,
            event_bytes: spec.source.size.max_bytes(),
            placement: match spec.recorder.placement {
                PlacementKind::Free => RecordPlacement::Free,
                PlacementKind::Pinned => RecordPlacement::Pinned,
            },
            to_null,
            source_seconds: seconds(self.source.elapsed_ns),
            seconds: seconds(scheduled),
            achieved_bytes_per_second: per_second(total.received.bytes, self.source.elapsed_ns),
            durable_bytes_per_second: (!to_null).then(|| per_second(total.durable.bytes, scheduled)),
            first: self.first.as_ref().and_then(|first| first_events(first, self.lead_ns, to_null)),
            ledger: self.ledger(),
            cpu: self.cpu(),
            pool_bytes: self.record.pool_bytes,
            pool_bytes_used_max: self.record.pool_bytes_used_max,
            backlog_bytes_max: (!self.samples.is_empty()).then(|| self.backlog_bytes_max()),
            stall_seconds_max: longest_stall(&self.samples).map(|stall| stall.as_secs_f64()),
            engine: (!to_null).then(|| self.engine()),
            faults: self.verify.as_ref().map(|report| report.fault_count),
            read_back: self.read_back.clone(),
            broken_off: self.broken_off(),
            loads: Vec::new(),
            notes: notes.chain(incidents).chain(cached).chain(files).collect(),
        }
    }
}

/// Times of the first events relative to the schedule, which started `lead_ns` after the trial.
fn first_events(first: &First, lead_ns: u64, to_null: bool) -> Option<RecordFirst> {
    let moment = |moment: Moment| RecordMoment {
        seconds: seconds(moment.t_ns.saturating_sub(lead_ns)),
        events: moment.events,
        bytes: moment.bytes,
    };
    Some(RecordFirst {
        events: first.events,
        received: moment(first.received?),
        durable: first.durable.filter(|_| !to_null).map(moment),
    })
}

#[cfg(test)]
#[path = "account_tests.rs"]
mod tests;
