//! Long-term writing: stability of the write rate, changes and their causes, steady state.
//!
//! Writes a series of files, by default as the recorder writes segments: direct, preallocated, with
//! several requests in flight and a flush per file; once the space is used, the oldest file is
//! overwritten. The rate per second goes to a change detector that reports changes as they happen,
//! and the rates of rounds to SNIA's steady-state criterion. First writes and overwrites are
//! separate phases. Memory use is constant.
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_error::Cause;
use keepup_measure::clock::Clock;
use keepup_measure::histogram::Latency;
use keepup_results::{DiskFinding, LatencyFigures, SteadyChange};

use super::fio::FioFile;
use super::phase::{PhaseClock, RATE_GUESS};
use super::sweep::RATE_MAX;
use super::{Cost, DiskMeasured, DiskTest, TestDirectories};
use crate::file_io::mode::Mode;
use crate::file_io::{IoDirection, Point, Series};
use crate::preflight::Checked;
use crate::{Context, WorkloadError};

mod causes;
mod log;
mod thinned;
mod watch;

use log::Log;
use watch::Watch;

/// Sampling interval of the rate.
const TICK: Duration = Duration::from_secs(1);
/// Margin of free space for changes between the check of a volume and the last file.
const MARGIN_BYTES: u64 = 64 << 20;

/// Parameters of the test.
#[derive(Clone, Debug)]
pub struct Steady {
    /// Total size of the series, a multiple of the file size, bytes.
    pub span_bytes: u64,
    /// File size, a multiple of the request size, bytes.
    pub file_bytes: u64,
    /// Request size and queue depth.
    pub point: Point,
    /// I/O settings.
    pub mode: Mode,
    /// Time limit, if any.
    pub time: Option<Duration>,
    /// Limit of bytes written, if any.
    pub bytes: Option<u64>,
    /// Length of a round.
    pub round: Duration,
}

/// Reason for the end of a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Everything was written.
    Written,
    /// Time limit.
    Time,
    /// Stopped by the user.
    Stopped,
}

/// Largest multiple of `file_bytes` that fits on every volume, bytes.
pub fn available_span(volumes: &[Checked], file_bytes: u64) -> u64 {
    let least = volumes.iter().map(|volume| volume.usable_bytes).min().unwrap_or(0);
    least.saturating_sub(MARGIN_BYTES) / file_bytes * file_bytes
}

/// One-sentence description of a change.
fn sentence(change: &SteadyChange) -> String {
    let mb = |rate: f64| rate / 1e6;
    let verb = if change.is_drop() { "fell" } else { "rose" };
    let causes: Vec<&str> = change.causes.iter().map(|cause| cause.seen.as_str()).collect();
    format!(
        "at {:.0} s, after {:.1} GB, the rate {verb} from {:.0} to {:.0} MB/s: {}",
        change.at_seconds,
        change.at_bytes as f64 / 1e9,
        mb(change.before_bytes_per_second),
        mb(change.after_bytes_per_second),
        if causes.is_empty() { "no cause was seen".to_owned() } else { causes.join("; ") }
    )
}

impl Steady {
    /// Writes until `end_bytes` in total, the time limit, or a stop.
    fn lap(&self, work: &mut Work<'_>, end_bytes: u64, context: &mut Context) -> Result<End, WorkloadError> {
        loop {
            let now_ns = context.clock.now_ns();
            if context.stop.load(Ordering::Acquire) {
                return Ok(End::Stopped);
            }
            if work.deadline_ns.is_some_and(|deadline_ns| now_ns >= deadline_ns) {
                return Ok(End::Time);
            }
            while work.series.start(end_bytes, context.clock.as_ref())? {}
            if work.series.is_idle() && work.series.started_bytes() >= end_bytes {
                return Ok(End::Written);
            }
            let next_ns = work.deadline_ns.map_or(work.tick_ns, |deadline_ns| deadline_ns.min(work.tick_ns));
            let timeout = Duration::from_nanos(next_ns.saturating_sub(now_ns)).min(TICK);
            work.series.wait(timeout, context.clock.as_ref(), &mut work.latency)?;
            if context.clock.now_ns() >= work.tick_ns {
                work.tick(context);
            }
        }
    }
}

/// State of a run.
struct Work<'a> {
    series: Series,
    log: Log,
    watch: Watch<'a>,
    latency: Latency,
    /// Time of the next sample.
    tick_ns: u64,
    deadline_ns: Option<u64>,
}

impl Work<'_> {
    /// Takes a sample and reports a detected change.
    fn tick(&mut self, context: &mut Context) {
        let now_ns = context.clock.now_ns();
        self.tick_ns = now_ns + TICK.as_nanos() as u64;
        let bytes = self.series.done_bytes();
        let conditions = self.watch.read(now_ns, bytes);
        let change = self.log.tick(now_ns, bytes, self.series.overwrites(), conditions);
        for file in self.series.take_finished() {
            self.log.file(file);
        }
        if let Some(sample) = self.log.latest() {
            let rate = sample.bytes as f64 / sample.seconds;
            let readings = [("bytes_per_second".to_owned(), rate)];
            (context.sample)((sample.at_seconds * 1e3) as u64, readings.into());
        }
        if let Some(change) = change {
            (context.note)(&sentence(&change));
        }
    }

    /// Completes and flushes all started writes.
    fn finish(&mut self, context: &mut Context) -> Result<(), WorkloadError> {
        self.series.finish(context.clock.as_ref(), &mut self.latency)?;
        self.tick(context);
        Ok(())
    }
}

impl DiskTest for Steady {
    fn name(&self) -> &'static str {
        "steady"
    }

    fn cost(&self) -> Cost {
        let by_time = self.time.map(|time| (time.as_secs_f64() * RATE_MAX) as u64);
        let bytes = self.bytes.into_iter().chain(by_time).min().unwrap_or(self.span_bytes);
        let slow = Duration::from_secs_f64(bytes as f64 / RATE_GUESS);
        let time = self.time.into_iter().chain(self.bytes.map(|_| slow)).min().unwrap_or(slow);
        Cost {
            bytes_written: bytes,
            space_bytes: self.span_bytes.min(bytes.next_multiple_of(self.file_bytes)),
            time,
        }
    }

    fn fio(&self, volumes: &[PathBuf]) -> Result<FioFile, &'static str> {
        let mut file = FioFile::new(&self.mode);
        for volume in volumes {
            file.job("steady", volume, IoDirection::Write, self.point, true);
            file.set("filename_format", "keepup-fio-steady.$filenum");
            file.set("nrfiles", self.span_bytes / self.file_bytes);
            file.set("filesize", self.file_bytes);
            file.set("file_service_type", "sequential");
            if let Some(bytes) = self.bytes {
                file.set("io_size", bytes);
            }
            if let Some(time) = self.time {
                file.timed(Duration::ZERO, time);
            }
        }
        Ok(file)
    }

    fn measure(
        &self,
        place: &mut TestDirectories,
        found: &mut DiskMeasured,
        context: &mut Context,
    ) -> Result<(), WorkloadError> {
        let files = self.span_bytes / self.file_bytes;
        let paths: Vec<PathBuf> = (0..files).map(|n| place.first.file(&format!("data_{n:05}"))).collect();
        let clock = Arc::clone(&context.clock);
        let clock: &dyn Clock = clock.as_ref();
        let series = Series::new(&self.mode, self.point, self.file_bytes, paths)?;
        let watch = Watch::new(Path::new("/"), place.first.path());
        let begin_ns = clock.now_ns();
        let deadline_ns = self.time.map(|time| begin_ns + time.as_nanos() as u64);
        let log = Log::new(begin_ns, self.round);
        let tick_ns = begin_ns + TICK.as_nanos() as u64;
        let mut work = Work { series, log, watch, latency: Latency::new(), tick_ns, deadline_ns };
        work.watch.read(begin_ns, 0);
        let all = self.bytes.unwrap_or(u64::MAX);
        for (name, end_bytes) in [("first write", all.min(self.span_bytes)), ("overwrite", all)] {
            let (bytes_before, files_before) = (work.series.done_bytes(), work.series.files_begun());
            if bytes_before >= end_bytes {
                break;
            }
            work.latency = Latency::new();
            let begun = PhaseClock::begin(clock);
            let outcome = self.lap(&mut work, end_bytes, context).and_then(|end| {
                work.finish(context)?;
                Ok(end)
            });
            if outcome.is_err() {
                // Include bytes since the last sample.
                work.tick(context);
            }
            let files = work.series.files_begun() - files_before;
            let bytes = work.series.done_bytes() - bytes_before;
            let cut = match &outcome {
                Ok(End::Stopped) => Some("stopped by the user".to_owned()),
                Ok(_) => None,
                Err(error) => Some(Cause::of(error).to_text()),
            };
            work.log.end_lap();
            found.finding = Some(DiskFinding::Steady(work.log.finding(cut)));
            let end = outcome?;
            let mut phase = begun.end(clock, name.to_owned(), files, bytes);
            phase.operations = Some(bytes / self.point.bytes as u64);
            phase.latency = Some(LatencyFigures::from(&work.latency));
            if bytes > 0 {
                found.phases.push(phase);
            }
            if end != End::Written {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "steady_tests.rs"]
mod tests;
