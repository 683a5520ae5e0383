//! Files that another program writes into subdirectories.
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::directory::{content, gap_events, index, record, stop, wait_for_entries};
use crate::common::{directory, json, keepup, until, verified};

/// Files below a directory by relative path.
fn tree(root: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            } else {
                let path = entry.path();
                let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// What `export` restores.
fn restored(here: &Path, name: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let out = format!("restored-{name}");
    let run = keepup(here, &["export", &format!("a/{name}"), "--to", "files", "--out", &out]);
    assert_eq!(run.code(), 0, "{run:#?}");
    tree(&here.join(out))
}

/// Directories and files of one program: each directory is new, and its files are written at once.
fn write_scans(root: &Path, program: u64, scans: u64) -> u64 {
    let mut files = 0;
    let write = |path: &Path, number: u64| fs::write(path, content(program * 1_000_000 + number)).unwrap();
    for scan in 0..scans {
        let name = |suffix: &str| root.join(format!("p{program}/scan_{scan}{suffix}"));
        let first = scan * 100;
        match scan % 5 {
            // Nested directories, and a file on each level.
            0 => {
                fs::create_dir_all(name("/x/y")).unwrap();
                write(&name("/x/y/1"), first);
                write(&name("/2"), first + 1);
                write(&name("/x/3"), first + 2);
                files += 3;
            }
            // Renamed while a file in it is written, and between two files.
            1 => {
                fs::create_dir_all(name("a/in")).unwrap();
                write(&name("a/in/1"), first);
                let mut open = fs::File::create(name("a/in/2")).unwrap();
                std::io::Write::write_all(&mut open, &content(first)).unwrap();
                fs::rename(name("a"), name("b")).unwrap();
                std::io::Write::write_all(&mut open, b"after the rename").unwrap();
                drop(open);
                write(&name("b/in/3"), first + 2);
                fs::rename(name("b/in"), name("b/final")).unwrap();
                files += 3;
            }
            // An unfinished name until it is complete.
            2 => {
                fs::create_dir_all(name(".tmp/in")).unwrap();
                write(&name(".tmp/in/1"), first);
                fs::rename(name(".tmp"), name("")).unwrap();
                files += 1;
            }
            // One name for one directory after the other.
            3 => {
                for number in 0..8 {
                    let current = root.join(format!("p{program}/current"));
                    fs::create_dir_all(&current).unwrap();
                    write(&current.join("1"), first + number);
                    fs::rename(&current, name(&format!("_{number}"))).unwrap();
                }
                files += 8;
            }
            // Written elsewhere and moved in; files move from one directory to another.
            _ => {
                let elsewhere = root.with_file_name(format!("elsewhere-{program}"));
                fs::create_dir_all(elsewhere.join("deep")).unwrap();
                write(&elsewhere.join("deep/1"), first);
                fs::create_dir_all(root.join(format!("p{program}"))).unwrap();
                fs::rename(&elsewhere, name("")).unwrap();
                write(&name("/2"), first + 1);
                fs::rename(name("/2"), name("/deep/2")).unwrap();
                files += 2;
            }
        }
    }
    files
}

#[test]
fn a_storm_of_directories_is_recorded_file_by_file() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in,recursive"], &[]);
    let root = here.join("in");
    let files: u64 = std::thread::scope(|scope| {
        let writers = (1..=3).map(|program| {
            let root = &root;
            scope.spawn(move || write_scans(root, program, 50))
        });
        writers.collect::<Vec<_>>().into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    // Closed files count, although the recorder is stopped at once.
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let account = json(&run);
    let durable = &account["ledger"]["streams"]["0"]["durable"]["events"];
    assert_eq!((durable, gap_events(&account)), (&files.into(), 0), "{account:#}");
    verified(here, "a/run");
    let written = tree(&root);
    assert_eq!(written.len() as u64, files);
    let restored = restored(here, "run");
    let names = |tree: &BTreeMap<Vec<u8>, Vec<u8>>| {
        tree.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&restored), names(&written));
    assert!(restored == written, "restored files differ");
}

#[test]
fn existing_directories_and_those_that_are_not_recorded() {
    let directory = directory();
    let here = directory.path();
    for name in ["in/old/deep", "in/.snapshot", "in/scan.part", "other"] {
        fs::create_dir_all(here.join(name)).unwrap();
    }
    let write = |name: &str| fs::write(here.join(name), name).unwrap();
    ["in/old/deep/1", "in/.snapshot/2", "in/scan.part/3", "other/4"].into_iter().for_each(write);
    std::os::unix::fs::symlink(here.join("other"), here.join("in/link")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let program = record(here, "run", &["dir:in,recursive,pattern=[0-9]*"], &[]);
    ["in/old/deep/5", "in/.snapshot/6", "in/link/7", "in/old/x"].into_iter().for_each(write);
    wait_for_entries(here, "run", 1);
    fs::rename(here.join("in/scan.part"), here.join("in/scan")).unwrap();
    wait_for_entries(here, "run", 2);
    // What is read is moved out, and more is written there.
    fs::rename(here.join("in/old"), here.join("away")).unwrap();
    write("away/deep/8");
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let incidents = json(&run)["incidents"]["listed"].to_string();
    assert!(incidents.contains("files not recorded, there before the start: 1"), "{incidents}");
    let expected = [("old/deep/5", "in/old/deep/5"), ("scan/3", "in/scan.part/3")];
    assert_eq!(restored(here, "run"), expected.map(|(name, bytes)| (name.into(), bytes.into())).into());
    // Everything that is there now, in a recording of its own.
    let run = stop(record(here, "all", &["dir:in,recursive,existing=record"], &[]));
    assert_eq!(run.code(), 0, "{run:#?}");
    assert_eq!(restored(here, "all"), [(b"scan/3".to_vec(), b"in/scan.part/3".to_vec())].into());
}

#[test]
fn a_directory_that_is_renamed_later_renames_its_files() {
    let directory = directory();
    let here = directory.path();
    let program = record(here, "run", &["dir:in,recursive"], &[]);
    fs::create_dir_all(here.join("in/scan/x")).unwrap();
    fs::write(here.join("in/scan/x/1"), "1").unwrap();
    fs::write(here.join("in/scan/2"), "2").unwrap();
    wait_for_entries(here, "run", 2);
    fs::rename(here.join("in/scan"), here.join("in/sample")).unwrap();
    wait_for_entries(here, "run", 4);
    fs::write(here.join("in/sample/x/3"), "3").unwrap();
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let entries = index(here, "run");
    assert_eq!(entries.len(), 5, "{entries:#?}");
    let renamed = entries.iter().find(|entry| entry.name == "sample/x/1").unwrap();
    assert_eq!(renamed.renamed_from.as_deref(), Some("scan/x/1"));
    let expected = [("sample/2", "2"), ("sample/x/1", "1"), ("sample/x/3", "3")];
    assert_eq!(restored(here, "run"), expected.map(|(name, bytes)| (name.into(), bytes.into())).into());
}

#[test]
fn files_in_a_directory_that_is_moved_out_or_removed_too_early_are_lost() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir_all(here.join("in/a")).unwrap();
    fs::create_dir_all(here.join("in/b")).unwrap();
    let program = record(here, "run", &["dir:in,recursive"], &[]);
    fs::write(here.join("in/first"), "1").unwrap();
    wait_for_entries(here, "run", 1);
    program.signal("STOP");
    fs::write(here.join("in/a/moved"), "2").unwrap();
    fs::write(here.join("in/b/removed"), "3").unwrap();
    fs::rename(here.join("in/a"), here.join("away")).unwrap();
    fs::remove_dir_all(here.join("in/b")).unwrap();
    program.signal("CONT");
    wait_for_entries(here, "run", 3);
    let run = stop(program);
    assert_eq!((run.code(), gap_events(&json(&run))), (1, 2), "{run:#?}");
    let lost: BTreeMap<String, String> =
        index(here, "run").into_iter().filter_map(|entry| Some((entry.name, entry.lost?))).collect();
    let expected = [
        ("a/moved", "moved out of the directory before it was read"),
        ("b/removed", "removed before it was read"),
    ];
    assert_eq!(lost, expected.map(|(name, why)| (name.to_owned(), why.to_owned())).into());
}

#[test]
fn more_directories_than_the_kernel_may_watch() {
    let directory = directory();
    let here = directory.path();
    fs::create_dir_all(here.join("in/1/2/3")).unwrap();
    fs::create_dir_all(here.join("a")).unwrap();
    let limited = |watches: u32| {
        let record = format!(
            "echo {watches} > /proc/sys/user/max_inotify_watches && exec {} record --from \
             dir:in,recursive --name run --json --volume a --pool '64 MiB' --segment '32 MiB'",
            env!("CARGO_BIN_EXE_keepup")
        );
        keepup_testkit::program::Program::start("unshare", &["-U", "-r", "sh", "-c", &record], here)
    };
    let refused = limited(2).wait();
    if refused.stderr.contains("unshare")
        || refused.stderr.contains("max_inotify_watches") && refused.code() != 4
    {
        return keepup_testkit::root::skip(
            "more_directories_than_the_kernel_may_watch",
            "no user namespaces",
        );
    }
    assert_eq!(refused.code(), 4, "{refused:#?}");
    assert!(refused.stderr.contains("it has more directories than the kernel may watch"), "{refused:#?}");
    assert!(refused.stderr.contains("hint: raise fs.inotify.max_user_watches"), "{refused:#?}");
    // One that is new and cannot be watched is scanned.
    let mut program = limited(4);
    program.line("writing with ");
    for name in ["in/1/2/3/a", "in/new/b", "in/new/deep/c"] {
        fs::create_dir_all(here.join(name).parent().unwrap()).unwrap();
        fs::write(here.join(name), name).unwrap();
    }
    wait_for_entries(here, "run", 3);
    fs::write(here.join("in/new/deep/d"), "d").unwrap();
    until("a scan finds the file", || index(here, "run").len() >= 4);
    let run = stop(program);
    assert_eq!(run.code(), 0, "{run:#?}");
    let incidents = json(&run)["incidents"]["listed"].to_string();
    assert!(incidents.contains("subdirectories beyond the kernel's limit of watches: 2"), "{incidents}");
    assert_eq!(json(&run)["ledger"]["streams"]["0"]["durable"]["events"], 4, "each file once: {run:#?}");
    assert_eq!(restored(here, "run"), tree(&here.join("in")));
}
