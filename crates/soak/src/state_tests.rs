//! Resuming from a state file, and refusal of any other file.
use std::collections::BTreeMap;
use std::time::Duration;

use keepup_error::Diagnostic as _;
use keepup_results::{SoakFile, SoakKind, SoakPart, SoakPlace, SoakRange};
use proptest::prelude::*;

use super::*;
use crate::plan::{DigestKind, Mode, ReferencePlan};

/// Opens a state file, retrying while a child process of another test still holds the inherited
/// lock (until its exec).
fn open(path: &Path, start: SoakStart) -> Result<SoakState, SoakError> {
    for _ in 0..2000 {
        match SoakState::open(path, start.clone()) {
            Err(SoakError::StateBusy { .. }) => std::thread::sleep(Duration::from_millis(10)),
            other => return other,
        }
    }
    SoakState::open(path, start)
}

fn plan() -> SoakPlan {
    SoakPlan {
        mode: Mode::Copy,
        digest: DigestKind::Md5,
        volumes: vec!["/data/a".into()],
        references: vec![ReferencePlan::File { path: "/ref".into() }, ReferencePlan::Made { bytes: 7 }],
        stamped_bytes: 0,
    }
}

fn start(digit: &str) -> SoakStart {
    let counters = vec![ErrorCounter { name: "a".into(), value: None }];
    SoakStart::new(digit.repeat(32).parse().unwrap(), 5, plan(), counters)
}

fn mismatch() -> SoakMismatch {
    let none = String::new;
    SoakMismatch {
        turn: 3,
        volume: "/data/a".into(),
        file: "copy".into(),
        what: SoakFile::Copy,
        way: none(),
        ranges: vec![SoakRange {
            offset: u64::MAX,
            bytes: 1,
            bits: 1,
            kind: SoakKind::Flipped,
            expected: "00".into(),
            found: "01".into(),
            xor: "01".into(),
            origin: None,
        }],
        kinds: BTreeMap::from([(SoakKind::Flipped, 1), (SoakKind::Stale, 4)]),
        bytes: 5,
        bits: 9,
        place: Some(SoakPlace::Medium),
        rereads: vec!["direct: right".into()],
        kept: Some("kept".into()),
    }
}

fn turn(bytes: u64) -> Record {
    let part = SoakPart { bytes, elapsed_ns: 2, cpu_ns: 1 };
    let totals = SoakTotals { turns: 1, files: 3, elapsed_ns: 10, read: part, ..SoakTotals::default() };
    Record::Turn { totals }
}

/// Writes a state file with some turns and returns the account.
fn written(path: &Path) -> Account {
    let mut state = open(path, start("a")).unwrap();
    state.note(Record::Session { time_unix_ns: 1 }).unwrap();
    state.note(Record::Digests { digests: vec!["d1".into()] }).unwrap();
    for bytes in [10, u64::from(u32::MAX)] {
        state.note(turn(bytes)).unwrap();
    }
    state.note(Record::Mismatch(mismatch())).unwrap();
    state.account
}

#[test]
fn an_account_is_resumed_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let account = written(&path);
    assert_eq!((account.totals.turns, account.totals.read.bytes), (2, 10 + u64::from(u32::MAX)));
    assert_eq!((account.damage.mismatches, account.damage.bits, account.kept), (1, 9, 1));
    let mut again = open(&path, start("b")).unwrap();
    assert_eq!((&again.account, again.torn_bytes), (&account, 0), "its own identity, not the one offered");
    again.note(turn(1)).unwrap();
    let account = again.account.clone();
    drop(again);
    assert_eq!(open(&path, start("b")).unwrap().account, account);
}

#[test]
fn a_line_without_its_end_is_cut_off_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    written(&path);
    let whole = std::fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').map(|at| at + 1).collect();
    for cut in 0..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let state = open(&path, start("a")).unwrap();
        let kept = ends.iter().copied().filter(|end| *end <= cut).max();
        // Before the end of its first line it is a new soak.
        let kept = kept.unwrap_or_else(|| std::fs::metadata(&path).unwrap().len() as usize);
        drop(state);
        assert_eq!(std::fs::read(&path).unwrap()[..kept.min(cut)], whole[..kept.min(cut)], "cut at {cut}");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), kept as u64, "cut at {cut}");
    }
}

#[test]
fn a_damaged_file_is_refused_and_not_modified() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    written(&path);
    let whole = std::fs::read(&path).unwrap();
    let last = whole.len() - 1;
    for at in (0..last).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&path, &damaged).unwrap();
        let error = open(&path, start("a")).unwrap_err();
        assert!(matches!(error, SoakError::State { .. }), "{at}: {error}");
        assert_eq!(std::fs::read(&path).unwrap(), damaged);
    }
    for foreign in ["my notes", "my notes\n", "{\"t\":\"turn\"} 00000000\n"] {
        std::fs::write(&path, foreign).unwrap();
        let error = open(&path, start("a")).unwrap_err();
        assert!(matches!(error, SoakError::State { line: 1, offset: 0, .. }), "{foreign:?}: {error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
    }
}

#[test]
fn another_plan_and_a_second_process_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    written(&path);
    let mut other = start("a");
    other.plan.digest = DigestKind::Blake3;
    let error = open(&path, other).unwrap_err();
    assert!(error.to_string().contains(r#"digest is "md5", not "blake3""#), "{error}");
    assert!(error.hint().is_some(), "{error}");
    let held = open(&path, start("a")).unwrap();
    let busy = SoakState::open(&path, start("a")).unwrap_err();
    assert!(matches!(busy, SoakError::StateBusy { .. }), "{busy}");
    drop(held);
    open(&path, start("a")).unwrap();
}

#[test]
fn an_unopenable_state_file_gives_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let (nowhere, link) = (directory.path().join("no/where/state"), directory.path().join("link"));
    std::os::unix::fs::symlink(directory.path().join("elsewhere"), &link).unwrap();
    for (path, hint) in [(&nowhere, "mkdir -p "), (&link, "name the file itself")] {
        let refused = open(path, start("a")).unwrap_err();
        assert!(refused.hint().unwrap().starts_with(hint), "{refused}");
    }
    assert!(!directory.path().join("elsewhere").exists());
}

#[test]
fn of_very_many_mismatches_the_first_are_listed_and_all_are_counted() {
    let mut state = SoakState::without_state(start("a"));
    for _ in 0..LISTED_MAX + 7 {
        state.note(Record::Mismatch(mismatch())).unwrap();
    }
    state.note(Record::Mismatch(SoakMismatch { what: SoakFile::Reference, ..mismatch() })).unwrap();
    let count = LISTED_MAX as u64 + 7;
    let damage = &state.account.damage;
    assert_eq!(
        (state.account.mismatches.len(), damage.mismatches, damage.references),
        (LISTED_MAX, count, 1)
    );
    assert_eq!((damage.kinds[&SoakKind::Stale], damage.places[&SoakPlace::Medium]), (4 * count, count));
    assert_eq!(state.path_for_damaged(&std::env::temp_dir()), None, "enough are kept");
}

proptest! {
    #[test]
    fn a_state_of_any_bytes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(state) = open(&path, start("a")) {
            prop_assert_eq!(state.account.totals, SoakTotals::default());
        } else {
            prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
