//! Separate phases, the three end conditions, and removal of all files.
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use keepup_measure::clock::SystemClock;
use keepup_results::{DiskPhase, SteadyCause, SteadyCauseKind, SteadyFinding};

use super::*;
use crate::disk::OnVolumes;
use crate::{Workload, run};

const FILE: u64 = 8 << 20;

fn test(bytes: Option<u64>, time: Option<Duration>) -> Steady {
    let point = Point { bytes: 1 << 20, depth: 4 };
    let (mode, round) = (Mode::default(), Duration::from_secs(1));
    Steady { span_bytes: 2 * FILE, file_bytes: FILE, point, mode, time, bytes, round }
}

/// Phases and finding of a run; none without direct I/O.
fn measured(test: Steady, stop: bool) -> Option<(Vec<DiskPhase>, SteadyFinding)> {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let samples = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&samples);
    let sample = Box::new(move |_, readings: BTreeMap<String, f64>| seen.lock().unwrap().push(readings));
    let stop = Arc::new(AtomicBool::new(stop));
    let mut context = Context { clock: Arc::new(SystemClock), stop, sample, note: Box::new(|_| {}) };
    let cost = test.cost();
    let mut workload = OnVolumes::new(test, vec![directory.path().into()], "scratch".into());
    let found = match run(&mut workload, &mut context) {
        Err(WorkloadError::Sys(keepup_sys::SysError::NotDirect { .. })) => return None,
        outcome => outcome.unwrap(),
    };
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "its files are gone");
    let written: u64 = found.phases.iter().map(|phase| phase.bytes).sum();
    assert!(written <= cost.bytes_written, "{written} of {cost:?}");
    assert!(workload.plan().space_bytes.values().all(|space| *space <= 2 * FILE));
    match found.finding {
        Some(DiskFinding::Steady(finding)) => Some((found.phases, finding)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_write_and_the_overwrite_are_two_phases() {
    let Some((phases, finding)) = measured(test(Some(5 * FILE), None), false) else { return };
    let listed: Vec<_> = phases.iter().map(|p| (p.name.as_str(), p.files, p.bytes)).collect();
    assert_eq!(listed, [("first write", 2, 2 * FILE), ("overwrite", 3, 3 * FILE)]);
    for phase in &phases {
        assert_eq!(phase.operations, Some(phase.bytes >> 20));
        assert!(phase.latency.unwrap().max_ns as f64 / 1e9 <= phase.seconds * 1.002, "{phase:?}");
    }
    assert_eq!(finding.laps.iter().map(|lap| lap.overwrites).collect::<Vec<_>>(), [false, true]);
    assert_eq!(finding.samples.iter().map(|sample| sample.bytes).sum::<u64>(), 5 * FILE);
    assert_eq!(finding.files.iter().map(|file| file.first).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(finding.files.iter().map(|file| file.bytes).sum::<u64>(), 5 * FILE);
    assert_eq!(finding.cut_short, None);
}

#[test]
fn less_than_the_span_is_written_once() {
    let Some((phases, finding)) = measured(test(Some(FILE + (3 << 20)), None), false) else { return };
    let listed: Vec<_> = phases.iter().map(|p| (p.name.as_str(), p.files, p.bytes)).collect();
    assert_eq!(listed, [("first write", 2, FILE + (3 << 20))]);
    assert_eq!(finding.laps.len(), 1);
}

#[test]
fn the_clock_ends_it_and_seconds_become_samples() {
    let time = Duration::from_millis(2500);
    let mut most = 0;
    // Fewer if a flush takes seconds.
    for _ in 0..3 {
        let Some((phases, finding)) = measured(test(None, Some(time)), false) else { return };
        let written: u64 = phases.iter().map(|phase| phase.bytes).sum();
        assert_eq!(finding.samples.last().unwrap().at_bytes, written);
        assert!(finding.samples.last().unwrap().at_seconds >= time.as_secs_f64());
        assert!(finding.samples.windows(2).all(|pair| pair[0].at_seconds < pair[1].at_seconds));
        most = most.max(finding.samples.len());
        if most >= 3 {
            return;
        }
    }
    panic!("{most} samples in 2.5 s");
}

#[test]
fn a_stop_keeps_what_there_is() {
    let Some((phases, finding)) = measured(test(Some(FILE), None), true) else { return };
    assert_eq!(phases.iter().map(|phase| phase.bytes).sum::<u64>(), 0);
    assert_eq!(finding.cut_short.as_deref(), Some("stopped by the user"));
}

#[test]
fn the_smallest_volume_limits_the_span() {
    let volume = |usable_bytes| Checked { path: "a".into(), usable_bytes, warnings: Vec::new() };
    assert_eq!(available_span(&[volume(10 * FILE + MARGIN_BYTES - 1), volume(u64::MAX)], FILE), 9 * FILE);
    assert_eq!(available_span(&[volume(10 * FILE + MARGIN_BYTES)], FILE), 10 * FILE);
    assert_eq!(available_span(&[volume(5)], FILE), 0);
}

#[test]
fn a_change_is_described_in_a_sentence() {
    let mut change = SteadyChange {
        at_seconds: 340.4,
        at_bytes: 512_300_000_000,
        noticed_seconds: 345.0,
        before_bytes_per_second: 1.52e9,
        after_bytes_per_second: 0.98e9,
        causes: Vec::new(),
    };
    let expected = "at 340 s, after 512.3 GB, the rate fell from 1520 to 980 MB/s: no cause was seen";
    assert_eq!(sentence(&change), expected);
    for seen in ["one", "two"] {
        change.causes.push(SteadyCause { kind: SteadyCauseKind::Steal, seen: seen.into() });
    }
    assert!(sentence(&change).ends_with("MB/s: one; two"));
}
