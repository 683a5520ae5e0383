//! Description, verification and recovery of all recordings of a set.

use super::*;
use crate::set::testing::TestSet;

const ONE_THREAD: VerifyOptions = VerifyOptions { threads: 1 };

#[test]
fn a_set_that_is_here_is_whole() {
    let mut test = TestSet::new(15);
    test.end();
    let report = verify_set(&test.open(), ONE_THREAD, &|| 5, &|_| {});
    // The blocks of stream 2 at daq2 start at event 15, and its journal does not say so.
    let second = report.recordings[1].report.as_ref().unwrap();
    assert!(!second.is_intact());
    assert!(!report.whole);
    assert!(report.account.is_complete());
    let mut test = TestSet::new(0);
    test.end();
    let report = verify_set(&test.open(), ONE_THREAD, &|| 5, &|_| {});
    assert!(report.whole, "{report:?}");
    let info = describe_set(&test.open(), false);
    assert_eq!(info.recordings.iter().filter(|found| found.info.is_some()).count(), 2);
    assert_eq!(info.account.streams[&2].duplicates, 20);
}

#[test]
fn progress_covers_all_recordings() {
    let mut test = TestSet::new(0);
    test.end();
    let last = std::sync::Mutex::new(Progress::default());
    let show = |progress: Progress| {
        let mut last = last.lock().unwrap();
        assert!(progress.done_bytes >= last.done_bytes && progress.done_bytes <= progress.total_bytes);
        *last = progress;
    };
    let report = verify_set(&test.open(), ONE_THREAD, &|| 5, &show);
    let last = last.into_inner().unwrap();
    let bytes = report.recordings.iter().filter_map(|found| found.report.as_ref()).map(|r| r.bytes);
    assert_eq!((last.done_bytes, last.total_bytes), (bytes.sum(), last.done_bytes));
}

#[test]
fn a_recording_that_is_not_here_is_stated_everywhere() {
    let mut test = TestSet::new(0);
    test.end();
    std::fs::remove_dir_all(test.recordings[1].root.path()).unwrap();
    let open = test.open();
    let problem = |state: &MemberState| (state.is_here, state.problem.clone().unwrap_or_default());
    let info = describe_set(&open, false);
    let (is_here, what) = problem(&info.recordings[1].member);
    assert!(!is_here && what.starts_with("no recording in"), "{what}");
    let report = verify_set(&open, ONE_THREAD, &|| 5, &|_| {});
    assert!(!report.whole && report.recordings[1].report.is_none());
    assert_eq!(report.account.incomplete_hosts, ["daq2"]);
    let recovery = recover_set(&open, RecoverOptions::default(), &mut |_| {});
    assert!(!recovery.complete);
    std::fs::create_dir(test.recordings[1].root.path()).unwrap();
}

#[test]
fn recovery_seals_what_was_cut_off_and_nothing_else() {
    let mut test = TestSet::new(0);
    test.recordings[0].volumes.iter_mut().for_each(|volume| volume.watermark());
    test.recordings[0].release();
    test.recordings[1].end();
    test.recordings[1].release();
    let sealed = test.recordings[1].volumes[0].segment_path();
    let before = std::fs::read(&sealed).unwrap();
    // Another test's child process may hold the journal's lock for a moment.
    let mut recovery = recover_set(&test.open(), RecoverOptions::default(), &mut |_| {});
    for _ in 0..2000 {
        if recovery.complete {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        recovery = recover_set(&test.open(), RecoverOptions::default(), &mut |_| {});
    }
    assert!(recovery.complete, "{recovery:?}");
    assert_eq!(std::fs::read(&sealed).unwrap(), before);
    let again = recover_set(&test.open(), RecoverOptions::default(), &mut |_| {});
    assert!(again.complete && again.recordings.iter().all(|found| found.report.is_none()), "{again:?}");
    let report = verify_set(&test.open(), ONE_THREAD, &|| 5, &|_| {});
    assert!(report.recordings.iter().all(|found| found.report.as_ref().is_some_and(|r| r.is_intact())));
    // daq2 ended cleanly with all of stream 2; stream 3 is only at daq1, and its end is not known.
    assert!(report.account.streams[&2].is_end_known && !report.account.streams[&3].is_end_known);
}
