//! Files that another program writes into a directory.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use keepup_recording::access::{From, StreamReader};
use keepup_recording::reader::Recording;
use keepup_stream::file_index::FileEntry;
use keepup_testkit::disk::FaultyDisk;
use keepup_testkit::program::{Program, Run};
use keepup_testkit::root::{allowed, skip};
use serde_json::Value;

use crate::common::{FILE_SERVER, busy_directory, directory, json, keepup, recorded, start, until, verified};

/// Files by name, with their content.
type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A recorder of `sources` as the run `name`. The directory `in` exists.
pub(super) fn record(here: &Path, name: &str, sources: &[&str], more: &[&str]) -> Program {
    for directory in ["in", "a"] {
        fs::create_dir_all(here.join(directory)).unwrap();
    }
    let sources = sources.iter().flat_map(|source| ["--from", source]);
    let settings = ["--name", name, "--json", "--volume", "a", "--pool", "64 MiB", "--segment", "32 MiB"];
    let arguments = ["record"].into_iter().chain(sources).chain(settings).chain(more.iter().copied());
    let mut program = start(here, &arguments.collect::<Vec<_>>());
    program.line("writing with ");
    program
}

pub(super) fn stop(program: Program) -> Run {
    program.signal("INT");
    program.wait()
}

/// Content of the file `number`: the same for every call, different for every number.
pub(super) fn content(number: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    let length = match number % 7 {
        0 => 0,
        1 => 4096,
        2 => random.usize(1_100_000..1_600_000),
        _ => random.usize(1..200_000),
    };
    let mut bytes = vec![0; length];
    random.fill(&mut bytes);
    bytes
}

/// The durable entries of the index, also while recording.
pub(super) fn index(here: &Path, name: &str) -> Vec<FileEntry> {
    let mut entries = Vec::new();
    let Ok(recording) = Recording::open(&[here.join("a").join(name)]) else { return entries };
    let id =
        recording.streams().iter().find(|(_, info)| info.name.ends_with("files-index")).map(|(&id, _)| id);
    let reader = id.and_then(|id| StreamReader::open(&recording, id).ok().flatten());
    if let Some(mut reader) = reader {
        let _ = reader.read(From::Sequence(0), &mut |event| {
            entries.push(FileEntry::from_line(event.payload).unwrap());
            ControlFlow::Continue(())
        });
    }
    entries
}

pub(super) fn wait_for_entries(here: &Path, name: &str, count: usize) {
    until("the files are not durable", || index(here, name).len() >= count);
}

/// Files that `export` restores.
fn restored(here: &Path, name: &str) -> Content {
    let out = format!("restored-{name}");
    let run = keepup(here, &["export", &format!("a/{name}"), "--to", "files", "--out", &out]);
    assert_eq!(run.code(), 0, "{run:#?}");
    files(&here.join(out))
}

/// Regular files of a directory.
fn files(directory: &Path) -> Content {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let regular = entries.filter(|entry| entry.file_type().unwrap().is_file());
    regular.map(|entry| (entry.file_name().into_vec(), fs::read(entry.path()).unwrap())).collect()
}

pub(super) fn gap_events(account: &Value) -> u64 {
    account["ledger"]["streams"]["0"]["gap_events"]["file_unreadable"].as_u64().unwrap_or(0)
}

/// Writes the file `number` in one of the ways of vendor programs; returns its final name.
fn write(here: &Path, number: u64) -> Vec<u8> {
    let bytes = content(number);
    let name = match number % 5 {
        0 => [b"no utf-8 \xFF ", number.to_string().as_bytes()].concat(),
        1 => format!("line\nfeed {number}").into_bytes(),
        _ => format!("frame_{number:05}.tif").into_bytes(),
    };
    let path = here.join("in").join(OsStr::from_bytes(&name));
    match number % 4 {
        0 => fs::write(&path, &bytes).unwrap(),
        1 => {
            let temporary = here.join("in").join(format!("{number}.tmp"));
            fs::write(&temporary, &bytes).unwrap();
            fs::rename(temporary, &path).unwrap();
        }
        2 => {
            fs::write(here.join("elsewhere"), &bytes).unwrap();
            fs::rename(here.join("elsewhere"), &path).unwrap();
        }
        _ => {
            fs::write(here.join("elsewhere"), &bytes).unwrap();
            fs::hard_link(here.join("elsewhere"), &path).unwrap();
            fs::remove_file(here.join("elsewhere")).unwrap();
        }
    }
    name
}

#[test]
fn a_directory_may_have_any_path() {
    let directory = directory();
    let here = directory.path();
    let long = ["x".repeat(150), "y".repeat(150)].join("/");
    let paths = [long.as_str(), "tab\tbed", "👩\u{200d}🔬 \u{202e}", "a,b"];
    let addresses: Vec<String> =
        paths.iter().map(|path| format!("dir:{},existing=record", path.replace(',', ",,"))).collect();
    for (number, path) in (0..).zip(paths) {
        fs::create_dir_all(here.join(path)).unwrap();
        fs::write(here.join(path).join("file"), content(number)).unwrap();
    }
    for (number, address) in (0..).zip(&addresses) {
        let name = format!("run{number}");
        let program = record(here, &name, &[address], &[]);
        wait_for_entries(here, &name, 1);
        let run = stop(program);
        assert_eq!(run.code(), 0, "{run:#?}");
        assert_eq!(restored(here, &name), Content::from([(b"file".to_vec(), content(number))]));
    }
    // As parts of the names of streams.
    let all: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let program = record(here, "all", &all, &[]);
    until("not every directory is recorded", || {
        Recording::open(&[here.join("a/all")]).is_ok_and(|found| found.streams().len() == 8)
    });
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    verified(here, "a/all");
}

#[test]
fn several_hundred_files_come_back_under_their_names() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in"], &[]);
    let written: Content = (0..420).map(|number| (write(here, number), content(number))).collect();
    // Closed files count, although the recorder is stopped at once.
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!(account["ledger"]["streams"]["0"]["durable"]["events"], 420, "{account:#}");
    // A child of another test has a copy of every open file until it executes its program.
    let mut incidents = account["incidents"]["listed"].as_array().unwrap().iter();
    let is_still_open = |what: &serde_json::Value| what.as_str().unwrap().contains("open for writing after");
    assert!(incidents.all(is_still_open), "{account:#}");
    verified(here, "a/run");
    assert_eq!(files(&here.join("in")), written);
    assert!(restored(here, "run") == written, "restored files differ");
    let entries = index(here, "run");
    assert_eq!(entries.iter().map(|entry| entry.sequence).collect::<Vec<_>>(), (0..420).collect::<Vec<_>>());
    for entry in &entries {
        let bytes = &written[&entry.name_bytes().unwrap()];
        let crc = format!("{:08x}", keepup_stream::wire::crc32(bytes));
        assert_eq!((entry.bytes, entry.crc32.as_deref()), (Some(bytes.len() as u64), Some(&*crc)));
    }
    let manifest = fs::read_to_string(here.join("a/run/keepup.json")).unwrap();
    assert!(manifest.contains("\"directory\": \"in\""), "{manifest}");
}

#[test]
fn changed_and_renamed_files() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in"], &[]);
    let path = |name: &str| here.join("in").join(name);
    fs::write(path("log"), "one").unwrap();
    fs::write(path("first name"), "two").unwrap();
    wait_for_entries(here, "run", 2);
    let mut log = fs::OpenOptions::new().append(true).open(path("log")).unwrap();
    std::io::Write::write_all(&mut log, b" and more").unwrap();
    drop(log);
    fs::rename(path("first name"), path("last name")).unwrap();
    // Opened for writing and not changed.
    wait_for_entries(here, "run", 4);
    drop(fs::OpenOptions::new().append(true).open(path("log")).unwrap());
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let incidents = json(&run)["incidents"]["listed"].to_string();
    assert!(incidents.contains("files recorded again, changed: 1; first: \\\"log\\\""), "{incidents}");
    let entries = index(here, "run");
    assert_eq!(entries.len(), 4, "{entries:#?}");
    let renamed = entries.iter().find(|entry| entry.renamed_from.is_some()).unwrap();
    assert_eq!((&*renamed.name, renamed.renamed_from.as_deref()), ("last name", Some("first name")));
    let first = format!("log#{}", entries.iter().find(|entry| entry.name == "log").unwrap().sequence);
    let expected = [("last name", "two"), ("log", "one and more"), (&*first, "one")];
    let expected = expected.map(|(name, bytes)| (name.into(), bytes.into()));
    assert_eq!(restored(here, "run"), expected.into());
}

#[test]
fn lost_files_have_a_name_and_a_cause() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in"], &["--max-event", "1 MB"]);
    let path = |name: &str| here.join("in").join(name);
    fs::write(path("first"), "1").unwrap();
    wait_for_entries(here, "run", 1);
    program.signal("STOP");
    fs::write(path("removed\n"), "2").unwrap();
    fs::remove_file(path("removed\n")).unwrap();
    fs::write(path("moved"), "3").unwrap();
    fs::rename(path("moved"), here.join("moved")).unwrap();
    fs::write(path("replaced"), "4").unwrap();
    fs::write(path("new.tmp"), "5").unwrap();
    fs::rename(path("new.tmp"), path("replaced")).unwrap();
    fs::write(path("large"), vec![0; 1_000_001]).unwrap();
    program.signal("CONT");
    wait_for_entries(here, "run", 6);
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert_eq!(gap_events(&account), 4, "{account:#}");
    let lost: BTreeMap<String, String> =
        index(here, "run").into_iter().filter_map(|entry| Some((entry.name, entry.lost?))).collect();
    let expected = [
        ("large", "1000001 bytes, limit 1000000 bytes"),
        ("moved", "moved out of the directory before it was read"),
        ("removed\n", "removed before it was read"),
        ("replaced", "replaced by another file before it was read"),
    ];
    assert_eq!(lost.len(), expected.len(), "{lost:#?}");
    for (name, why) in expected {
        assert!(lost[name].starts_with(why), "{lost:#?}");
        assert!(account["incidents"].to_string().contains(why), "{account:#}");
    }
    let expected = [("first", "1"), ("replaced", "5")].map(|(name, bytes)| (name.into(), bytes.into()));
    assert_eq!(restored(here, "run"), expected.into());
}

/// The only row of rejected data: number of files, and its text.
fn rejected(account: &Value) -> (u64, String) {
    let [row] = &account["rejected"].as_array().unwrap()[..] else { panic!("{account:#}") };
    assert_eq!((&row["reason"], &row["unit"]), (&"incomplete".into(), &"file".into()), "{account:#}");
    (row["count"].as_u64().unwrap(), row["detail"].to_string())
}

#[test]
fn files_that_are_open_at_the_end_are_rejected() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir_all(here.join("in/sub")).unwrap();
    let program = record(here, "run", &["dir:in,recursive"], &[]);
    let path = |name: &str| here.join("in").join(name);
    fs::write(path("again"), "complete").unwrap();
    wait_for_entries(here, "run", 1);
    let open = |name: &str| {
        let mut file = fs::File::create(path(name)).unwrap();
        std::io::Write::write_all(&mut file, b"half").unwrap();
        file
    };
    let _open = ["again", "new", "sub/new", "unwanted.tmp"].map(open);
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    let (count, text) = rejected(&account);
    assert!(count == 3 && text.contains("open or still changing at the end"), "{account:#}");
    assert_eq!((&account["whole"], gap_events(&account)), (&false.into(), 0), "{account:#}");
    assert_eq!(restored(here, "run"), [(b"again".to_vec(), b"complete".to_vec())].into());
    // Without any file that is complete.
    let run = stop(record(here, "empty", &["dir:in"], &[]));
    assert_eq!(run.code(), 0, "open since before the start, and not changed: {run:#?}");
    let program = record(here, "nothing", &["dir:in"], &[]);
    let _open = open("other");
    let run = stop(program);
    assert_eq!((run.code(), rejected(&json(&run)).0), (1, 1), "{run:#?}");
}

#[test]
fn a_rewritten_file_with_the_same_size_and_time() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in"], &[]);
    let path = here.join("in/x.cbf");
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (count, content) in [(1, b"A"), (2, b"B"), (3, b"C")] {
        let mut file = fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, content).unwrap();
        file.set_modified(time).unwrap();
        drop(file);
        wait_for_entries(here, "run", count);
    }
    drop(fs::OpenOptions::new().append(true).open(&path).unwrap());
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(json(&run)["ledger"]["streams"]["0"]["durable"]["events"], 3, "{run:#?}");
    assert_eq!(restored(here, "run")[b"x.cbf".as_slice()], b"C");
}

#[test]
fn only_regular_files_are_opened() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir_all(here.join("in/sub")).unwrap();
    fs::write(here.join("secret"), "do not follow").unwrap();
    let program = record(here, "run", &["dir:in"], &[]);
    let path = |name: &str| here.join("in").join(name);
    let made = std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap();
    assert!(made.success());
    // A reader that opened it would block.
    drop(fs::OpenOptions::new().read(true).write(true).open(path("fifo")).unwrap());
    std::os::unix::fs::symlink(here.join("secret"), here.join("link")).unwrap();
    fs::rename(here.join("link"), path("link")).unwrap();
    fs::write(path("sub/inner"), "not recorded").unwrap();
    fs::create_dir(here.join("other")).unwrap();
    fs::rename(here.join("other"), path("other")).unwrap();
    fs::write(path("file"), "recorded").unwrap();
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let incidents = json(&run)["incidents"]["listed"].to_string();
    assert!(
        incidents.contains("names not recorded, not regular files: 2; first: \\\"fifo\\\""),
        "{incidents}"
    );
    assert!(incidents.contains("subdirectories not recorded: 1"), "{incidents}");
    assert_eq!(restored(here, "run"), [(b"file".to_vec(), b"recorded".to_vec())].into());
}

#[test]
fn files_that_are_there_and_patterns() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir_all(here.join("in")).unwrap();
    (0..20).for_each(|number| fs::write(here.join(format!("in/old{number}.h5")), content(number)).unwrap());
    // Its time stamps are older than the start of the recording.
    std::thread::sleep(Duration::from_millis(50));
    let run = stop(record(here, "skipped", &["dir:in"], &[]));
    assert_eq!((run.code(), gap_events(&json(&run))), (0, 0), "{run:#?}");
    let incidents = json(&run)["incidents"]["listed"].to_string();
    assert!(incidents.contains("files not recorded, there before the start: 20"), "{incidents}");
    let source = "dir:in,existing=record,pattern=*.h5,pattern=*.cbf";
    let program = record(here, "recorded", &[source], &[]);
    fs::write(here.join("in/new.cbf"), "cbf").unwrap();
    fs::write(here.join("in/new.txt"), "txt").unwrap();
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let mut expected: Content =
        (0..20).map(|number| (format!("old{number}.h5").into_bytes(), content(number))).collect();
    expected.insert(b"new.cbf".to_vec(), b"cbf".to_vec());
    assert!(restored(here, "recorded") == expected);
    let run = keepup(here, &["record", "--from", "dir:nowhere", "--volume", "a"]);
    assert_eq!(run.code(), 4, "{run:#?}");
    assert!(run.stderr.contains("cannot record the files of nowhere: No such file"), "{run:#?}");
}

#[test]
fn an_overflow_of_the_kernel_queue_loses_no_file() {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: u64 = limit.trim().parse().unwrap();
    if limit > 50_000 {
        return skip(
            "an_overflow_of_the_kernel_queue_loses_no_file",
            "fs.inotify.max_queued_events is large",
        );
    }
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in"], &[]);
    fs::write(here.join("in/first"), "1").unwrap();
    wait_for_entries(here, "run", 1);
    program.signal("STOP");
    // Each file is two reports: created and closed.
    let written: Content = (0..limit * 2 / 3)
        .map(|number| {
            let name = format!("f{number}");
            fs::write(here.join("in").join(&name), number.to_le_bytes()).unwrap();
            (name.into_bytes(), number.to_le_bytes().to_vec())
        })
        .collect();
    program.signal("CONT");
    wait_for_entries(here, "run", written.len());
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    assert_eq!(
        account["ledger"]["streams"]["0"]["durable"]["events"],
        written.len() as u64 + 1,
        "each file once: {account:#}"
    );
    let incidents = account["incidents"]["listed"].to_string();
    assert!(incidents.contains("change queue of the kernel overflowed"), "{incidents}");
    let mut restored = restored(here, "run");
    restored.remove(b"first".as_slice());
    assert!(restored == written, "restored files differ");
}

#[test]
fn scans_and_reports_record_each_file_once_and_none_that_is_open() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in,settle=100ms"], &[]);
    let mut open = fs::File::create(here.join("in/open")).unwrap();
    std::io::Write::write_all(&mut open, b"half").unwrap();
    fs::write(here.join("in/closed"), "reported and scanned").unwrap();
    wait_for_entries(here, "run", 1);
    // Several scans later.
    std::thread::sleep(Duration::from_millis(500));
    std::io::Write::write_all(&mut open, b" and half").unwrap();
    drop(open);
    wait_for_entries(here, "run", 2);
    std::thread::sleep(Duration::from_millis(300));
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(json(&run)["ledger"]["streams"]["0"]["durable"]["events"], 2, "each file once: {run:#?}");
    let expected = [("open", "half and half"), ("closed", "reported and scanned")];
    let expected = expected.map(|(name, bytes)| (name.into(), bytes.into()));
    assert_eq!(restored(here, "run"), expected.into());
}

#[test]
fn a_removed_directory_ends_its_source_alone() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir_all(here.join("other")).unwrap();
    let program = record(here, "run", &["dir:in", "dir:other"], &[]);
    fs::write(here.join("in/a"), "1").unwrap();
    fs::write(here.join("other/b"), "2").unwrap();
    until("one file of each is not durable", || {
        let recording = Recording::open(&[here.join("a/run")]);
        let is_there = |recording: &Recording, id| {
            let mut count = 0;
            if let Ok(Some(mut reader)) = StreamReader::open(recording, id) {
                let _ = reader.read(From::Sequence(0), &mut |_| {
                    count += 1;
                    ControlFlow::Continue(())
                });
            }
            count == 1
        };
        recording.is_ok_and(|recording| is_there(&recording, 0) && is_there(&recording, 16))
    });
    fs::remove_dir_all(here.join("in")).unwrap();
    // The kernel does not report it; the recorder looks every second.
    std::thread::sleep(Duration::from_secs(3));
    fs::write(here.join("other/c"), "3").unwrap();
    let run = stop(program);
    assert_eq!(run.code(), 1, "{run:#?}");
    let account = json(&run);
    assert!(account["ended"].as_str().unwrap().contains("dir:in: cannot read directory: it was removed"));
    assert_eq!(account["ledger"]["streams"]["16"]["durable"]["events"], 2, "{account:#}");
    let run = keepup(here, &["export", "a/run", "--to", "files", "--out", "restored"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(files(&here.join("restored/other-files")).len(), 2);
    assert_eq!(files(&here.join("restored/in-files"))[b"a".as_slice()], b"1");
}

#[test]
fn a_killed_recorder_leaves_whole_files_and_a_new_one_records_them_all() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "killed", &["dir:in"], &[]);
    let mut written: Content = (0..60).map(|number| (write(here, number), content(number))).collect();
    wait_for_entries(here, "killed", 20);
    program.signal("KILL");
    program.wait();
    written.extend((60..80).map(|number| (write(here, number), content(number))));
    let run = keepup(here, &["recover", "a/killed"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let report = json(&keepup(here, &["verify", "a/killed", "--json"]));
    assert_eq!((&report["fault_count"], recorded(&report).0 >= 40), (&0.into(), true), "{report:#}");
    let survivors = restored(here, "killed");
    assert!(survivors.len() >= 20);
    for (name, bytes) in &survivors {
        // The index of the last files may not have been durable.
        let is_whole = match name.starts_with(b"file-") {
            true => written.values().any(|content| content == bytes),
            false => written.get(name) == Some(bytes),
        };
        assert!(is_whole, "{:?}", String::from_utf8_lossy(name));
    }
    let run = stop(record(here, "again", &["dir:in,existing=record"], &[]));
    assert_eq!(run.code(), 0, "{run:#?}");
    assert!(restored(here, "again") == written);
}

#[test]
#[ignore = "system"]
fn a_frozen_disk_stalls_no_other_source() {
    let test = "a_frozen_disk_stalls_no_other_source";
    if !allowed(test) {
        return;
    }
    let place = busy_directory();
    let here = place.path();
    let disk = match FaultyDisk::mount(&here.join("in"), FILE_SERVER) {
        Ok(disk) => disk,
        Err(why) => return skip(test, &why),
    };
    fs::create_dir(here.join("a")).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut program = start(
        here,
        &[
            "record",
            "--from",
            "dir:in",
            "--from",
            &format!("udp://{address}"),
            "--name",
            "run",
            "--json",
            "--volume",
            "a",
            "--pool",
            "64 MiB",
            "--segment",
            "32 MiB",
        ],
    );
    program.line("writing with ");
    fs::write(here.join("in/before"), "1").unwrap();
    wait_for_entries(here, "run", 1);
    fs::write(here.join("in/during"), content(2)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| disk.freeze(Duration::from_secs(10)));
        std::thread::sleep(Duration::from_millis(500));
        for number in 0..100u64 {
            socket.send_to(&number.to_be_bytes(), address).unwrap();
        }
        let since = std::time::Instant::now();
        until("packets are not durable", || {
            let recording = Recording::open(&[here.join("a/run")]);
            let mut count = 0;
            if let Ok(Some(mut reader)) = recording.as_ref().map_or(Ok(None), |r| StreamReader::open(r, 16)) {
                let _ = reader.read(From::Sequence(0), &mut |_| {
                    count += 1;
                    ControlFlow::Continue(())
                });
            }
            count == 100
        });
        assert!(since.elapsed() < Duration::from_secs(8), "the packets waited for the frozen disk");
    });
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let run = keepup(here, &["export", "a/run", "--to", "files", "--out", "restored"]);
    assert_eq!(run.code(), 0, "{run:#?}");
    let expected = [(b"before".to_vec(), b"1".to_vec()), (b"during".to_vec(), content(2))];
    assert_eq!(files(&here.join("restored")), expected.into());
}
