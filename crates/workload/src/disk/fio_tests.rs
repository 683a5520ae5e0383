//! Job files have the test's settings.
use std::path::PathBuf;

use super::*;
use crate::disk::DiskTest;
use crate::disk::concurrent::Concurrent;
use crate::disk::scale::{Scale, Step};
use crate::disk::sweep::Sweep;
use crate::disk::testdisk::{QUICK, Testdisk};
use crate::disk::throttle::{ClientGroup, Setting, Throttle};
use crate::file_io::mode::Pattern;

const POINT: Point = Point { bytes: 1 << 20, depth: 8 };

/// Options of each job by name, in order.
fn jobs(file: &FioFile) -> Vec<(String, Vec<String>)> {
    let mut jobs = Vec::new();
    for line in file.text().lines().filter(|line| !line.is_empty() && !line.starts_with(';')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => jobs.push((name.to_owned(), Vec::new())),
            None => jobs.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    jobs
}

fn volumes(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

#[test]
fn the_mode_is_said_once_for_all_jobs() {
    let pattern = Pattern { compressible: 50, duplicate: 20 };
    let space = Space::Overwritten;
    let mode = Mode {
        access: Access::Buffered,
        durability: Durability::EachWrite,
        engine: EngineChoice::Plain,
        pattern,
        space,
    };
    let global = jobs(&FioFile::new(&mode)).remove(0);
    assert_eq!(global.0, "global");
    for option in [
        "ioengine=psync",
        "direct=0",
        "sync=dsync",
        "overwrite=1",
        "end_fsync=1",
        "buffer_compress_percentage=50",
        "dedupe_percentage=20",
    ] {
        assert!(global.1.iter().any(|line| line == option), "{option}: {global:#?}");
    }
}

#[test]
fn a_sweep_is_a_job_for_each_point_one_after_the_other() {
    let points = vec![POINT, Point { bytes: 4096, depth: 1 }, Point { bytes: 64 << 20, depth: 64 }];
    let time = Duration::from_millis(1500);
    let sweep = Sweep { points, file_bytes: 1 << 30, time, mode: Mode::default() };
    let found = jobs(&sweep.fio(&volumes(&["/data/a", "/data/b"])).unwrap());
    let names: Vec<_> = found[1..].iter().map(|(name, _)| name.as_str()).collect();
    let once =
        ["write 1048576 B depth 8", "write 4096 B depth 1", "read 1048576 B depth 8", "read 4096 B depth 1"];
    assert_eq!(names, [once, once].concat(), "what does not fit into memory is left out");
    for (name, options) in &found[1..] {
        assert!(options[0] == "stonewall" && options.contains(&"runtime=1500ms".to_owned()), "{name}");
    }
    assert!(found[5].1.contains(&"directory=/data/b".to_owned()));
}

#[test]
fn concurrent_lanes_form_one_fio_group() {
    let concurrent = Concurrent {
        kinds: vec![IoDirection::Read],
        most: 2,
        point: POINT,
        file_bytes: 1 << 30,
        is_shared: false,
        mode: Mode::default(),
    };
    let found = jobs(&concurrent.fio(&volumes(&["/data/a"])).unwrap());
    let walls: Vec<bool> = found[1..].iter().map(|job| job.1[0] == "stonewall").collect();
    assert_eq!(walls, [true, true, false], "one alone, then two at once");
    assert!(found[3].1.contains(&format!("size={}", 2u64 << 30)));

    let scale = Scale {
        steps: Step::up_to(2),
        kind: IoDirection::Write,
        point: POINT,
        file_bytes: 1 << 30,
        ramp: Duration::from_secs(10),
        run: Duration::from_secs(60),
        mode: Mode::default(),
    };
    let found = jobs(&scale.fio(&volumes(&["/a:1", "/b"])).unwrap());
    let places: Vec<_> =
        found[1..].iter().map(|job| job.1.iter().find(|o| o.contains("directory")).unwrap()).collect();
    assert_eq!(places, ["directory=/a\\:1", "directory=/a\\:1", "directory=/b"]);
    assert!(found[1].1.contains(&"ramp_time=10000ms".to_owned()));
}

#[test]
fn paces_are_rates_or_pauses() {
    let period = Duration::from_millis(5);
    let group = |number, pace| ClientGroup { number, pace };
    let setting = |pace| Setting { writers: group(3, pace), readers: group(1, Pace::Free) };
    let throttle = Throttle {
        settings: vec![setting(Pace::Every(period)), setting(Pace::Pause(period))],
        point: POINT,
        file_bytes: 1 << 30,
        ramp: Duration::ZERO,
        run: Duration::from_secs(10),
        mode: Mode::default(),
        together: true,
    };
    let found = jobs(&throttle.fio(&volumes(&["/data/a"])).unwrap());
    assert_eq!(found.len(), 1 + 4);
    assert!(found[1].1.contains(&"rate=209715200".to_owned()), "{found:#?}");
    assert!(found[1].1.contains(&"numjobs=3".to_owned()));
    assert!(found[3].1.contains(&"thinktime=5000".to_owned()));
    assert!(!found[2].1.iter().any(|option| option.starts_with("rate")), "the reader is free");
    let groups = |throttle: &Throttle| {
        let found = jobs(&throttle.fio(&volumes(&["/data/a", "/data/b"])).unwrap());
        found[1..].iter().filter(|(_, options)| options[0] == "stonewall").count()
    };
    assert_eq!(groups(&throttle), 2, "both volumes at once in each setting");
    assert_eq!(groups(&Throttle { together: false, ..throttle }), 4);
}

#[test]
fn testdisk_has_its_six_series() {
    let found = jobs(&Testdisk { sequence: QUICK, direct: true }.fio(&volumes(&["/data/a"])).unwrap());
    let names: Vec<_> = found[1..].iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 6);
    assert_eq!((names[1], names[5]), ("create 8 x 8 MiB", "overwrite 256 x 8 KiB"));
    assert!(found[2].1.contains(&"nrfiles=8".to_owned()) && found[0].1.contains(&"direct=1".to_owned()));
}
