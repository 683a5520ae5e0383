//! Without optional kernel features the recorder still works, and reports what is missing and how to
//! enable it.
use keepup_testkit::powers::{with_locked_memory, without_huge_pages, without_io_uring};
use keepup_testkit::root::skip;
use keepup_testkit::{Program, Run};

use crate::common::{TestDirectory, busy_directory, count, directory, json, keepup, recorder, verified};

/// Sends events to a recorder. All must be recorded.
fn recorded_whole(place: &TestDirectory, mut record: Program) -> Run {
    let to = record.address().to_string();
    let source = ["source", "csl", "--to", &to, "--events", "600", "--rate", "max", "--json"];
    let source = keepup(place.path(), &source);
    assert_eq!(source.code(), 0, "{source:#?}");
    let record = record.wait();
    assert_eq!(record.code(), 0, "{record:#?}");
    let sent = count(&json(&source)["sent"]);
    assert_eq!(sent.0, 600);
    assert_eq!(count(&json(&record)["durable"]), sent);
    assert_eq!(verified(place.path(), "disk/run"), sent);
    record
}

/// Checks that a message names the missing feature and a command to enable it.
fn names_missing(record: &Run, word: &str) {
    assert!(record.stderr.contains(word), "no {word:?}: {record:#?}");
    assert!(record.stderr.lines().any(|line| line.starts_with("hint: ")), "{record:#?}");
}

#[test]
#[ignore = "system"]
fn a_recorder_works_without_io_uring() {
    let place = directory();
    let recorded = without_io_uring(|| recorded_whole(&place, recorder(place.path(), &["disk"], &[])));
    match recorded {
        Ok(record) => {
            names_missing(&record, "io_uring");
            assert_eq!(json(&record)["volumes"][0]["engine"], "pwrite");
        }
        Err(why) => skip("a_recorder_works_without_io_uring", &why),
    }
}

#[test]
#[ignore = "system"]
fn a_missing_io_uring_is_an_error_if_requested() {
    let place = directory();
    let refused = without_io_uring(|| recorder(place.path(), &["disk"], &["--engine", "io_uring"]).wait());
    match refused {
        Ok(record) => {
            names_missing(&record, "io_uring");
            assert_eq!(record.code(), 4, "{record:#?}");
        }
        Err(why) => skip("a_missing_io_uring_is_an_error_if_requested", &why),
    }
}

#[test]
#[ignore = "system"]
fn a_recorder_works_with_little_locked_memory() {
    let place = directory();
    let here = place.path();
    std::fs::create_dir(here.join("disk")).unwrap();
    let arguments = ["record", "--listen", "127.0.0.1:0", "--name", "run", "--volume", "disk", "--json"];
    let arguments = [&arguments[..], &["--pool", "64 MiB", "--segment", "32 MiB"]].concat();
    let start = || with_locked_memory(64 << 10, env!("CARGO_BIN_EXE_keepup"), &arguments, here);
    // Memory in huge pages is not registered.
    let record = match without_huge_pages(start) {
        Ok(record) => recorded_whole(&place, record),
        Err(why) => return skip("a_recorder_works_with_little_locked_memory", &why),
    };
    let report = json(&record);
    let volume = &report["volumes"][0];
    if volume["engine"] != "io_uring" {
        return skip("a_recorder_works_with_little_locked_memory", "io_uring is not available");
    }
    assert!(volume["buffers"].as_str().unwrap().contains("not registered"), "{record:#?}");
    names_missing(&record, "locked");
}

/// All volumes share one registration: the pool counts once against the limit of locked memory.
#[test]
#[ignore = "system"]
fn the_pool_is_registered_once_for_all_volumes() {
    let place = directory();
    let here = place.path();
    let mut arguments = vec!["record", "--listen", "127.0.0.1:0", "--name", "run", "--json"];
    // Nobody without CAP_SYS_RESOURCE can raise the limit, which is 8 MiB by default.
    arguments.extend(["--pool", "6 MiB", "--block", "64 KiB", "--segment", "32 MiB"]);
    for volume in ["disk", "b", "c"] {
        std::fs::create_dir(here.join(volume)).unwrap();
        arguments.extend(["--volume", volume]);
    }
    let start = || with_locked_memory(8 << 20, env!("CARGO_BIN_EXE_keepup"), &arguments, here);
    let report = match without_huge_pages(start) {
        Ok(record) => json(&recorded_whole(&place, record)),
        Err(why) => return skip("the_pool_is_registered_once_for_all_volumes", &why),
    };
    let volumes = report["volumes"].as_array().unwrap();
    if volumes[0]["engine"] != "io_uring" || !kernel_copies_registrations() {
        let why = "io_uring is not available, or Linux is older than 6.12";
        return skip("the_pool_is_registered_once_for_all_volumes", why);
    }
    for volume in volumes {
        assert!(volume["buffers"].as_str().unwrap().ends_with(", registered"), "{report:#}");
    }
}

/// Whether a ring can take over the registered memory of another one.
fn kernel_copies_registrations() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

#[test]
#[ignore = "system"]
fn a_recorder_works_without_transparent_huge_pages() {
    const TEST: &str = "a_recorder_works_without_transparent_huge_pages";
    let place = busy_directory();
    let record = match without_huge_pages(|| recorder(place.path(), &["disk"], &[])) {
        Ok(record) => record,
        Err(why) => return skip(TEST, &why),
    };
    let record = recorded_whole(&place, record);
    let report = json(&record);
    let buffers = report["volumes"][0]["buffers"].as_str().unwrap();
    if buffers.starts_with("huge pages") {
        return skip(TEST, "huge pages are reserved on this machine");
    }
    assert!(buffers.starts_with("plain pages"), "{record:#?}");
    names_missing(&record, "huge");
}
