//! An interrupted verification goes on, and its result is the same; changed files are read again.
use std::fs;

use super::*;
use crate::layout::{SECTOR, segment_file_name};
use crate::testing::{TestRecording, payloads};
use crate::verify::{Selection, VerifyOptions, VerifyReport, verify, verify_selected};

fn recording() -> TestRecording {
    let mut test = TestRecording::new(1, crate::manifest::Placement::Pinned, &[0]);
    let payloads = payloads(1, 4, 2000);
    let mut next = 0;
    for _ in 0..4 {
        next = test.block(0, 0, next, 0, &payloads);
        next = test.block(0, 0, next, 0, &payloads);
        test.volumes[0].rotate();
    }
    test.end();
    test
}

fn resumed(opened: &Recording, state: &VerifyState) -> VerifyReport {
    verify_selected(opened, VerifyOptions { threads: 1 }, Selection::Whole, Some(state), &|_| {})
}

#[test]
fn an_interrupted_verification_goes_on_where_it_was() {
    let test = recording();
    let path = test.root.path().join("state");
    let opened = Recording::open(&test.dirs()).unwrap();
    let whole = verify(&opened, VerifyOptions { threads: 1 }, &|_| {});
    let state = VerifyState::open(&path, &opened).unwrap();
    assert_eq!(state.segments(), 0);
    assert_eq!(resumed(&opened, &state), whole);
    drop(state);
    // Cut off in the last line.
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().count();
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    // Damage in a segment that was read shows that it is not read again; the same times are given back to it.
    let first = test.dirs()[0].join(segment_file_name(0));
    let before = fs::metadata(&first).unwrap().modified().unwrap();
    let mut bytes = fs::read(&first).unwrap();
    bytes[SECTOR + 200] ^= 1;
    fs::write(&first, &bytes).unwrap();
    fs::File::options().append(true).open(&first).unwrap().set_modified(before).unwrap();
    let state = VerifyState::open(&path, &opened).unwrap();
    assert_eq!(state.segments(), lines - 2);
    assert_eq!(resumed(&opened, &state), whole);
    drop(state);
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), lines);
    // Another time of modification: it is read.
    fs::write(&first, &bytes).unwrap();
    let state = VerifyState::open(&path, &opened).unwrap();
    let found = resumed(&opened, &state);
    assert!(found.fault_count > 0 && found.faulty_segments == 1, "{found:#?}");
    state.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_file_of_something_else_is_refused() {
    let test = recording();
    let opened = Recording::open(&test.dirs()).unwrap();
    let path = test.root.path().join("state");
    let refused = |text: &str| {
        fs::write(&path, text).unwrap();
        let message = VerifyState::open(&path, &opened).unwrap_err().to_string();
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is not changed");
        message
    };
    let summed = |json: &str| format!("{json} {:08x}\n", crate::crc::crc32(json.as_bytes()));
    let other = summed(&format!("{{\"verification\":2,\"recording\":\"{}\"}}", "0".repeat(32)));
    assert!(refused(&other).contains("it is the state of recording 0000"));
    assert!(refused("my notes, without an end").contains("it is not the state of a verification"));
    assert!(refused("hello\n").contains("it is not the state of a verification"));
    let id = opened.manifest().recording;
    let head = summed(&format!("{{\"verification\":2,\"recording\":\"{id}\"}}"));
    assert!(refused(&format!("{head}{}", summed("{}"))).contains("line 2: "));
    let line = "{\"volume\":0,\"segment\":0,\"file\":{\"bytes\":1,\"modified_s\":1,\"modified_ns\":1},\
                \"scan\":{\"blocks\":1,\"duplicates\":0,\"bytes\":18446744073709551615,\"streams\":{},\
                \"faults\":{\"list\":[],\"count\":0}}}";
    let line = summed(line);
    assert!(refused(&format!("{head}{line}")).contains("line 2: its figures are impossible"));
    let flipped = line.replace("\"blocks\":1", "\"blocks\":0");
    assert!(refused(&format!("{head}{flipped}")).contains("line 2: its checksum is not"));
}
