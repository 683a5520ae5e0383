//! Unusable volumes, and a volume that fills up while recording.
use std::time::Duration;

use keepup_testkit::root::{SmallDisk, allowed, skip};

use crate::common::{count, directory, events, json, keepup, recorded, recorder, start};

fn refused(arguments: &[&str]) -> (i32, String) {
    let directory = directory();
    std::fs::write(directory.path().join("file"), "mine").unwrap();
    std::fs::create_dir_all(directory.path().join("disk/run")).unwrap();
    std::fs::write(directory.path().join("disk/run/notes.txt"), "mine").unwrap();
    let run = keepup(directory.path(), &[&["record", "--listen", "127.0.0.1:0"], arguments].concat());
    let mine = std::fs::read_to_string(directory.path().join("disk/run/notes.txt")).unwrap();
    assert_eq!(mine, "mine", "other files are not changed");
    (run.code(), run.stderr)
}

#[test]
fn every_unusable_volume_has_its_exit_code_and_reason() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--volume", "missing"], 2, "hint: mkdir"),
        (&["--volume", "file"], 2, "not a directory"),
        (&["--volume", "/etc"], 3, "is a system directory"),
        (&["--volume", "disk", "--name", "run"], 3, "run"),
        (&["--volume", "disk", "--segment", "100 TB"], 4, "are needed"),
        (&["--volume", "disk", "--pool", "1 MiB"], 2, "pool"),
        (&["--volume", "disk", "--pool", "1 Mb"], 2, "Mb"),
    ];
    for (arguments, code, reason) in cases {
        let (got, stderr) = refused(arguments);
        assert_eq!(got, code, "{arguments:?}: {stderr}");
        assert!(stderr.contains(reason), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let directory = directory();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = keepup(directory.path(), &["record", "--to-null", "--listen", &address]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains(&address) && run.stderr.contains("hint: "), "{run:#?}");
}

#[test]
#[ignore = "system"]
fn a_full_volume_ends_the_recording_and_keeps_acknowledged_events() {
    const TEST: &str = "a_disk_filled_by_somebody_else";
    if !allowed(TEST) {
        return;
    }
    let directory = directory();
    let here = directory.path();
    let disk = match SmallDisk::mount(&here.join("disk"), 200) {
        Ok(disk) => disk,
        Err(why) => return skip(TEST, &why),
    };
    let mut record = recorder(here, &["disk"], &["--segment", "16 MiB"]);
    let to = record.address().to_string();
    assert!(record.line("warning: ").contains("in memory"));
    let source = start(here, &["source", "csl", "--to", &to, "--time", "30s", "--json"]);
    std::thread::sleep(Duration::from_millis(600));
    let mut left = 120u64 << 20;
    let hog = disk.path().join("hog");
    while left > 0 && std::fs::write(hog.with_extension(left.to_string()), vec![1u8; 1 << 20]).is_ok() {
        left -= 1 << 20;
    }
    let record = record.wait();
    assert_eq!(record.code(), 1, "{record:#?}");
    let report = json(&record);
    assert!(report["ended"].as_str().unwrap().contains("no volume"), "{record:#?}");
    let source = source.wait();
    assert_eq!(source.code(), 1);
    let durable = count(&report["durable"]);
    assert!(durable.0 > 0);
    let verify = keepup(here, &["verify", "disk/run", "--json"]);
    let verified = json(&verify);
    assert_eq!(verified["fault_count"], 0, "{verify:#?}");
    assert!(recorded(&verified).0 >= durable.0, "{verify:#?}");
    assert!(events(&json(&source)["durable"]) <= recorded(&verified).0, "nothing acknowledged is missing");
}
