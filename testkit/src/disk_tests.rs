//! The disk stores files, has the requested faults, and leaves nothing mounted.
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::root::{allowed, skip};

#[test]
#[ignore = "the file server of the other tests"]
fn file_server() {
    serve_if_asked();
}

fn mounted(test: &str) -> Option<(tempfile::TempDir, FaultyDisk)> {
    if !allowed(test) {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    match FaultyDisk::mount(&directory.path().join("disk"), "disk::tests::file_server") {
        Ok(disk) => Some((directory, disk)),
        Err(why) => {
            skip(test, &why);
            None
        }
    }
}

#[test]
fn files_are_kept_and_calls_wait_while_it_is_frozen() {
    let Some((_directory, mut disk)) = mounted("files_are_kept") else { return };
    std::fs::create_dir(disk.path.join("d")).unwrap();
    let file = disk.path.join("d/file");
    std::fs::write(&file, [7; 300_000]).unwrap();
    std::fs::rename(&file, disk.path.join("other")).unwrap();
    assert_eq!(std::fs::read(disk.path.join("other")).unwrap(), [7; 300_000]);
    let names: Vec<_> = std::fs::read_dir(&disk.path).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["d", "other"]);
    let stall = Duration::from_millis(400);
    disk.stop();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| std::fs::write(&file, [1]).unwrap());
        std::thread::sleep(stall);
        assert!(!writer.is_finished(), "a stopped server wrote");
        disk.signal(Signal::CONT);
    });
    disk.slow_down(stall).unwrap();
    let begin = Instant::now();
    std::fs::write(&file, [1]).unwrap();
    assert!(begin.elapsed() >= stall, "{:?}", begin.elapsed());
}

#[test]
fn it_breaks_when_told_and_goes_with_the_test() {
    let Some((directory, mut disk)) = mounted("it_breaks_when_told") else { return };
    let path = disk.path.clone();
    disk.break_down().unwrap();
    let begin = Instant::now();
    while std::fs::write(path.join("file"), [1]).is_ok() {
        assert!(begin.elapsed() < MOUNT_LIMIT, "writes still succeed");
    }
    let failed = std::fs::write(path.join("file"), [1]).unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
    assert_ne!(device(&path), device(directory.path()));
    let open = std::fs::File::open(path.join("file")).unwrap();
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let disk = disk;
        disk.stop();
        panic!("as a test that fails while its disk is frozen");
    }));
    assert!(failed.is_err());
    assert_eq!(device(&path), device(directory.path()), "nothing is mounted any more");
    drop(open);
}
