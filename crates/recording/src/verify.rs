//! Verification: reads every byte of a recording and checks integrity and completeness.
//!
//! Invariants: damage is reported with its location and the scan continues after it; a loss
//! listed in the journal is a loss, any other loss is a fault; the report does not depend on the
//! number of threads.

mod closing;
mod coverage;
mod lanes;
mod report;
mod scan;
mod window;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keepup_stream::wire::StreamInfo;

use crate::duplicates::{Duplicates, duplicates};
use crate::layout::ChannelBytes;
use crate::ranges::Ranges;
use crate::reader::Recording;
use crate::volume::{Segment, Volume};
use closing::{check_endings, ending, location_path, settled_blocks};
use coverage::Coverage;
use lanes::Lanes;
use report::Faults;
use scan::{RecordingContext, SegmentScan, scan_segment};
use window::Window;

pub use report::{Ending, FAULTS_MAX, Fault, Stop, StreamReport, VerifyReport};

/// Options of a verification.
#[derive(Clone, Copy, Debug)]
pub struct VerifyOptions {
    /// Threads; at least 1. Each reads a segment of another volume; several read the same volume only while
    /// it is faster than they are.
    pub threads: usize,
}

/// Progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub done_bytes: u64,
    /// Bytes to read.
    pub total_bytes: u64,
}

/// State shared by all threads.
struct Shared<'a> {
    channels: BTreeMap<u32, Arc<ChannelBytes>>,
    duplicates: Duplicates,
    jobs: Vec<(&'a Volume, &'a Segment)>,
    lanes: Lanes,
    done_bytes: AtomicU64,
    total_bytes: u64,
    /// Whether no further segment is to be read.
    is_enough: &'a (dyn Fn() -> bool + Sync),
    progress: &'a (dyn Fn(Progress) + Sync),
    tally: Mutex<Tally>,
}

/// Sum of the scans, added in the order of the jobs, independent of the threads.
struct Tally {
    next_job: usize,
    waiting: BTreeMap<usize, SegmentScan>,
    coverage: BTreeMap<u32, Coverage>,
    report: VerifyReport,
}

/// Reads every byte of the recording below its durable watermarks, and checks it. `progress` is
/// called often and from several threads.
///
/// Read errors are part of the report: the function itself cannot fail.
pub fn verify(
    recording: &Recording,
    options: VerifyOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> VerifyReport {
    scan(recording, jobs(recording), options, &|| false, progress)
}

/// Like [`verify`], but reads segments only until `is_enough`, at least one, in an order in which any number
/// of the first ones is spread evenly over the recording.
///
/// A sample proves the integrity of what was read. If segments are left, completeness is not checked.
pub fn verify_sample(
    recording: &Recording,
    options: VerifyOptions,
    is_enough: &(dyn Fn() -> bool + Sync),
) -> VerifyReport {
    scan(recording, spread(jobs(recording)), options, is_enough, &|_| {})
}

/// Segments of all volumes. Those of the same time are on all volumes: reading them together joins their
/// streams early.
fn jobs(recording: &Recording) -> Vec<(&Volume, &Segment)> {
    let mut jobs: Vec<_> = recording.volumes().iter().flat_map(segments_of).collect();
    jobs.sort_by_key(|(volume, segment)| (segment.index, volume.manifest().volume_index));
    jobs
}

fn scan(
    recording: &Recording,
    jobs: Vec<(&Volume, &Segment)>,
    options: VerifyOptions,
    is_enough: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress) + Sync),
) -> VerifyReport {
    let streams = recording.streams();
    let channel =
        |(&id, &stream): (&u32, &&StreamInfo)| Some((id, Arc::new(ChannelBytes::new(stream).ok()?)));
    // Volumes by their places here: a manifest may claim any number.
    let number = |volume: &Volume| {
        recording.volumes().iter().position(|other| std::ptr::eq(other, volume)).unwrap_or(0)
    };
    let shared = Shared {
        channels: streams.iter().filter_map(channel).collect(),
        duplicates: duplicates(recording.volumes().iter()),
        total_bytes: jobs.iter().map(|(_, segment)| segment.file_bytes()).fold(0, u64::saturating_add),
        lanes: Lanes::new(jobs.iter().map(|(volume, _)| number(volume)).collect()),
        jobs,
        done_bytes: AtomicU64::new(0),
        is_enough,
        progress,
        tally: Mutex::new(Tally::new(recording)),
    };
    std::thread::scope(|scope| {
        for _ in 1..options.threads.min(shared.jobs.len()) {
            scope.spawn(|| work(&shared));
        }
        work(&shared);
    });
    let mut tally = shared.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Behind a segment that was not read, others were.
    for (job, scan) in std::mem::take(&mut tally.waiting) {
        tally.take(shared.jobs[job].1, scan);
    }
    tally.report.unread_segments = shared.jobs.len() as u64 - tally.report.segments;
    if tally.report.unread_segments > 0 { tally.report } else { tally.conclude(recording) }
}

/// The jobs in the order of the reversed bits of their places: the first half are every second one, the first
/// quarter every fourth.
fn spread<T>(jobs: Vec<T>) -> Vec<T> {
    let mut placed: Vec<(usize, T)> = jobs.into_iter().enumerate().collect();
    placed.sort_by_key(|(place, _)| place.reverse_bits());
    placed.into_iter().map(|(_, job)| job).collect()
}

fn segments_of(volume: &Volume) -> impl Iterator<Item = (&Volume, &Segment)> {
    volume.segments().iter().map(move |segment| (volume, segment))
}

/// Scans segments until none remains.
fn work(shared: &Shared<'_>) {
    let mut window = Window::default();
    while let Some(mut job) = shared.lanes.next() {
        let (volume, segment) = shared.jobs[job.number];
        // At least one segment is read.
        if job.number > 0 && (shared.is_enough)() {
            continue;
        }
        let place = (volume.manifest().volume_index, segment.index);
        let duplicates = shared.duplicates.get(&place).map(Vec::as_slice).unwrap_or_default();
        let known = RecordingContext { channels: &shared.channels, duplicates };
        let scan = scan_segment(volume, segment, known, &mut window, &|bytes| {
            let done_bytes = shared.done_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
            (shared.progress)(Progress { done_bytes, total_bytes: shared.total_bytes });
        });
        job.waited = window.waited();
        let mut tally = shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.add(&shared.jobs, job.number, scan);
    }
}

impl Tally {
    fn new(recording: &Recording) -> Tally {
        let stream = |(&id, info): (&u32, &&StreamInfo)| {
            (id, StreamReport { name: info.name.clone(), ..StreamReport::default() })
        };
        let report = VerifyReport {
            name: recording.manifest().name.clone(),
            recording: recording.manifest().recording,
            ending: ending(recording),
            segments: 0,
            unread_segments: 0,
            blocks: 0,
            duplicate_blocks: 0,
            bytes: 0,
            streams: recording.streams().iter().map(stream).collect(),
            faults: Vec::new(),
            fault_count: 0,
        };
        Tally { next_job: 0, waiting: BTreeMap::new(), coverage: BTreeMap::new(), report }
    }

    fn add(&mut self, jobs: &[(&Volume, &Segment)], job: usize, scan: SegmentScan) {
        self.waiting.insert(job, scan);
        while let Some(scan) = self.waiting.remove(&self.next_job) {
            if let Some((_, segment)) = jobs.get(self.next_job) {
                self.take(segment, scan);
            }
            self.next_job += 1;
        }
    }

    fn take(&mut self, segment: &Segment, scan: SegmentScan) {
        self.report.segments += 1;
        self.report.blocks += scan.blocks;
        self.report.duplicate_blocks += scan.duplicates;
        self.report.bytes += scan.bytes;
        let mut faults = scan.faults;
        for (stream, found) in scan.streams {
            let report = self.report.streams.entry(stream).or_default();
            report.recorded += found.recorded;
            report.damaged_events += found.damaged_events;
            let coverage = self.coverage.entry(stream).or_default();
            for finding in found.runs.into_iter().filter_map(|run| coverage.insert(run)) {
                faults.push(finding.fault(stream, &segment.path));
            }
        }
        self.report.take_faults(faults);
    }

    /// Final checks after all segments: holes, counts, and unexpected files.
    fn conclude(mut self, recording: &Recording) -> VerifyReport {
        let mut faults = Faults::default();
        let mut lost = BTreeMap::new();
        for gaps in recording.gaps().chunk_by(|a, b| a.stream == b.stream) {
            let ranges = gaps.iter().map(|gap| gap.first_sequence..gap.first_sequence + gap.events);
            lost.extend(gaps.first().map(|gap| (gap.stream, Ranges::join(ranges))));
        }
        let mut removed = recording.removed();
        for &stream in lost.keys().chain(removed.keys()) {
            self.report.streams.entry(stream).or_default();
        }
        for (&stream, report) in &mut self.report.streams {
            let lost = lost.remove(&stream).unwrap_or_default();
            let coverage = self.coverage.remove(&stream).unwrap_or_default();
            let removed = removed.remove(&stream).unwrap_or_default();
            let conclusion = coverage.conclude(&lost, settled_blocks(recording, &coverage), removed);
            report.removed = removed.count();
            report.lost_events = conclusion.lost_events;
            report.unsettled_events = conclusion.unsettled_events;
            for finding in conclusion.findings {
                let path = location_path(recording, finding.place);
                faults.push(finding.fault(stream, &path));
            }
        }
        check_endings(recording, &self.report.streams, &mut faults);
        self.report.take_faults(faults);
        self.report
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
