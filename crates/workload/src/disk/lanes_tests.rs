//! Concurrent lanes: consistency of parts and totals, adherence to the schedule, and stop on error
//! or request.
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::file_io::mode::{Access, EngineChoice, Space};
use crate::testing::context;

const FILE: u64 = 8 << 20;

fn mode(engine: EngineChoice) -> Mode {
    Mode { access: Access::Buffered, engine, ..Mode::default() }
}

fn lane(directory: &Path, name: &str, kind: IoDirection, pace: Pace, mode: &Mode) -> Lane {
    let target = Target::create(&directory.join(name), FILE, mode).unwrap();
    let target = match kind {
        IoDirection::Write => target,
        IoDirection::Read => Mover::fill(target, mode, &context()).unwrap(),
    };
    let point = Point { bytes: 16 << 10, depth: 3 };
    Lane { name: name.into(), volume: "here".into(), target, kind, point, pace }
}

fn until(run_ms: u64) -> Until {
    Until::Time { ramp: Duration::from_millis(10), run: Duration::from_millis(run_ms) }
}

#[test]
fn the_parts_are_the_whole() {
    for engine in [EngineChoice::Auto, EngineChoice::Plain, EngineChoice::Mapped] {
        let (place, mode) = (tempfile::tempdir().unwrap(), mode(engine));
        let lane = |name, kind| lane(place.path(), name, kind, Pace::Free, &mode);
        let mut lanes =
            [lane("a", IoDirection::Write), lane("b", IoDirection::Write), lane("c", IoDirection::Read)];
        let mut measure =
            || run_lanes("all".into(), &mode, &mut lanes, until(250), &context()).unwrap().unwrap();
        // A machine that was suspended for the whole window transfers nothing.
        let mut phase = measure();
        for _ in 0..2 {
            if phase.bytes == 0 {
                phase = measure();
            }
        }
        assert_eq!((phase.parts.len(), phase.files), (3, 3));
        assert_eq!(phase.bytes, phase.parts.iter().map(|part| part.bytes).sum::<u64>());
        assert_eq!(phase.operations, Some(phase.parts.iter().map(|part| part.operations).sum()));
        assert!(phase.bytes > 0, "{phase:#?}");
        assert!(phase.latency.is_none(), "of readers and writers together it would mean nothing");
        for part in &phase.parts {
            assert_eq!(part.bytes, part.operations * (16 << 10), "{part:#?}");
            assert_eq!(part.bytes, part.tenths.iter().sum::<u64>(), "{part:#?}");
            assert!(part.tenths.len() <= 3 && part.seconds == 0.25, "{part:#?}");
            assert!(part.flush_seconds.is_some() == part.writes, "{part:#?}");
            assert!(part.latency.is_some() == (part.bytes > 0), "{part:#?}");
            assert!(part.latency == part.service && part.seconds <= phase.seconds, "{part:#?}");
        }
    }
}

#[test]
fn no_lane_runs_ahead_of_its_schedule() {
    let (place, mode) = (tempfile::tempdir().unwrap(), mode(EngineChoice::Auto));
    let period = Duration::from_millis(5);
    let lane = |name, pace| lane(place.path(), name, IoDirection::Write, pace, &mode);
    let mut lanes = [lane("every", Pace::Every(period)), lane("pause", Pace::Pause(period))];
    let phase = run_lanes("paced".into(), &mode, &mut lanes, until(300), &context()).unwrap().unwrap();
    let [every, pause] = &phase.parts[..] else { panic!("{phase:#?}") };
    // Requests that are late at the start of the window may complete inside it: on a suspended
    // machine more than the window's nominal number.
    assert!(every.operations <= 310 / 5 + 1, "{every:#?}");
    assert!(pause.operations <= 300 / 5 + 1, "{pause:#?}");
    assert_eq!(every.target_bytes_per_second, Some(f64::from(16 << 10) / 0.005));
    assert_eq!(pause.target_bytes_per_second, None);
    let both = every.latency.zip(every.service);
    assert!(both.is_none_or(|(late, took)| late.mean_ns >= took.mean_ns), "being late counts: {every:#?}");
}

#[test]
fn all_lanes_end_with_the_first() {
    let (place, mode) = (tempfile::tempdir().unwrap(), mode(EngineChoice::Auto));
    let lane = |name, kind| lane(place.path(), name, kind, Pace::Free, &mode);
    for kind in [IoDirection::Write, IoDirection::Read] {
        let mut lanes = [lane("a", kind), lane("b", kind)];
        let phase = run_lanes("first".into(), &mode, &mut lanes, Until::First(FILE), &context());
        let phase = phase.unwrap().unwrap();
        assert_eq!(phase.parts[0].bytes, FILE);
        assert!(phase.parts[0].seconds == phase.parts[1].seconds);
        assert!(phase.latency.is_some(), "they do the same");
    }
}

#[test]
fn an_error_ends_all_lanes_and_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let mode = Mode { space: Space::Overwritten, ..mode(EngineChoice::Auto) };
    let lane = |name| lane(place.path(), name, IoDirection::Write, Pace::Free, &mode);
    let mut lanes = [lane("good"), lane("bad")];
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    lanes[1].target.file = Arc::new(full.into());
    let error = run_lanes("full".into(), &mode, &mut lanes, until(3_600_000), &context()).unwrap_err();
    assert!(error.to_string().contains("bad") && error.to_string().contains("No space left"), "{error}");
}

#[test]
fn a_stop_ends_all_and_leaves_no_phase() {
    let (place, mode) = (tempfile::tempdir().unwrap(), mode(EngineChoice::Auto));
    let lane = |name, pace| lane(place.path(), name, IoDirection::Write, pace, &mode);
    let mut lanes = [lane("free", Pace::Free), lane("slow", Pace::Every(Duration::from_secs(3600)))];
    let context = context();
    let stop = Arc::clone(&context.stop);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Release);
    });
    let phase = run_lanes("cut".into(), &mode, &mut lanes, until(3_600_000), &context).unwrap();
    stopper.join().unwrap();
    assert!(phase.is_none());
}
