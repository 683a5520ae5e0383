//! Verification: reads every byte of a recording and checks integrity and completeness.
//!
//! Invariants: damage is reported with its location and the scan continues after it; a loss
//! listed in the journal is a loss, any other loss is a fault; the report does not depend on the
//! number of threads.

mod closing;
mod coverage;
mod lanes;
mod report;
mod sample;
mod scan;
mod state;
mod window;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keepup_stream::wire::StreamInfo;

use crate::duplicates::{Duplicates, duplicates};
use crate::layout::ChannelBytes;
use crate::progress::Progress;
use crate::ranges::Ranges;
use crate::reader::Recording;
use crate::volume::{Segment, Volume};
use closing::{check_endings, check_other_files, ending, location_path, settled_blocks};
use coverage::Coverage;
use lanes::Lanes;
use report::Faults;
use scan::{RecordingContext, SegmentScan, scan_segment};
use window::Window;

pub use report::{Ending, FAULTS_MAX, Fault, Stop, StreamReport, VerifyReport};
pub use sample::{Seed, Selection, damaged_share_max};
pub use state::VerifyState;

/// Options of a verification.
#[derive(Clone, Copy, Debug)]
pub struct VerifyOptions {
    /// Threads; at least 1. Each reads a segment of another volume; several read the same volume only while
    /// it is faster than they are.
    pub threads: usize,
}

/// State shared by all threads.
struct Shared<'a> {
    channels: BTreeMap<u32, Arc<ChannelBytes>>,
    duplicates: Duplicates,
    jobs: Vec<(&'a Volume, &'a Segment)>,
    lanes: Lanes,
    done_bytes: AtomicU64,
    known_bytes: AtomicU64,
    total_bytes: u64,
    selection: Selection<'a>,
    state: Option<&'a VerifyState>,
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
    verify_selected(recording, options, Selection::Whole, None, progress)
}

/// Like [`verify`], but reads the selected segments only, and not those with a result in `state`.
///
/// A sample proves the integrity of what was read. If segments are left, completeness is not checked.
pub fn verify_selected(
    recording: &Recording,
    options: VerifyOptions,
    selection: Selection<'_>,
    state: Option<&VerifyState>,
    progress: &(dyn Fn(Progress) + Sync),
) -> VerifyReport {
    let all = jobs(recording);
    let count = all.len();
    let mut tally = scan(recording, selection.of(all), options, (selection, state), progress);
    tally.report.unread_segments = count as u64 - tally.report.segments;
    if tally.report.unread_segments > 0 { tally.report } else { tally.conclude(recording) }
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
    (selection, state): (Selection<'_>, Option<&VerifyState>),
    progress: &(dyn Fn(Progress) + Sync),
) -> Tally {
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
        known_bytes: AtomicU64::new(0),
        selection,
        state,
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
    tally
}

fn segments_of(volume: &Volume) -> impl Iterator<Item = (&Volume, &Segment)> {
    volume.segments().iter().map(move |segment| (volume, segment))
}

impl Shared<'_> {
    fn scan(&self, volume: &Volume, segment: &Segment, window: &mut Window) -> SegmentScan {
        let place = (volume.manifest().volume_index, segment.index);
        let duplicates = self.duplicates.get(&place).map(Vec::as_slice).unwrap_or_default();
        let known = RecordingContext { channels: &self.channels, duplicates };
        scan_segment(volume, segment, known, window, &|bytes| self.done(bytes))
    }

    /// Reports `bytes` more as done.
    fn done(&self, bytes: u64) {
        let done_bytes = self.done_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let known_bytes = self.known_bytes.load(Ordering::Relaxed);
        (self.progress)(Progress { done_bytes, known_bytes, total_bytes: self.total_bytes });
    }
}

/// Scans segments until none remains.
fn work(shared: &Shared<'_>) {
    let mut window = Window::default();
    while let Some(mut job) = shared.lanes.next() {
        let (volume, segment) = shared.jobs[job.number];
        // At least one segment is read.
        if job.number > 0 && matches!(shared.selection, Selection::Until(is_enough) if is_enough()) {
            continue;
        }
        let scan = match shared.state.and_then(|state| state.take(volume, segment)) {
            Some(scan) => {
                shared.known_bytes.fetch_add(scan.bytes, Ordering::Relaxed);
                shared.done(scan.bytes);
                scan
            }
            None => {
                let scan = shared.scan(volume, segment, &mut window);
                job.waited = window.waited();
                shared.state.iter().for_each(|state| state.add(volume, segment, &scan));
                scan
            }
        };
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
            faulty_segments: 0,
            blocks: 0,
            duplicate_blocks: 0,
            bytes: 0,
            streams: recording.streams().iter().map(stream).collect(),
            rejected: recording.rejected(),
            unchecked: Vec::new(),
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
        self.report.faulty_segments += u64::from(scan.faults.count > 0);
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
        let (mut removed, starts) = (recording.removed(), recording.starts());
        for &stream in lost.keys().chain(removed.keys()) {
            self.report.streams.entry(stream).or_default();
        }
        for (&stream, report) in &mut self.report.streams {
            let lost = lost.remove(&stream).unwrap_or_default();
            let mut coverage = self.coverage.remove(&stream).unwrap_or_default();
            coverage.start = starts.get(&stream).copied().unwrap_or(0);
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
        self.report.unchecked = check_other_files(recording, &mut faults);
        check_endings(recording, &self.report.streams, &mut faults);
        self.report.take_faults(faults);
        self.report
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
