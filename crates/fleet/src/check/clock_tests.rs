//! Clock facts of trees of files.
use std::fs;

use super::*;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn programs_and_hardware_clocks_are_found() {
    let root = tree(&[
        ("proc/1/comm", "systemd\n"),
        ("proc/41/comm", "ptp4l\n"),
        ("proc/42/comm", "phc2sys\n"),
        ("proc/43/comm", "systemd-timesyn\n"),
        ("proc/44/comm", "my-chronyd\n"),
        ("proc/self/comm", "chronyd\n"),
        ("sys/class/ptp/ptp1/clock_name", "ice-0000:3b:00.0\n"),
        ("sys/class/ptp/ptp0/dev", "247:0\n"),
        (SOURCE, "tsc\n"),
    ]);
    let discipline = ClockDiscipline { is_synchronised: true, error_ns_max: 12_000 };
    let facts = collect(root.path(), Some(discipline));
    let programs = ["phc2sys", "ptp4l", "systemd-timesyncd"].map(str::to_owned);
    assert_eq!(facts.programs.as_deref(), Some(&programs[..]));
    assert_eq!(facts.hardware_clocks, ["ptp0", "ptp1: ice-0000:3b:00.0"]);
    assert_eq!((facts.source.as_deref(), facts.is_synchronised), (Some("tsc"), Some(true)));
    assert_eq!(facts.error_ns_max, Some(12_000));
}

#[test]
fn hidden_processes_are_not_taken_for_none() {
    let hidden = collect(tree(&[("proc/77/comm", "keepup\n")]).path(), None);
    assert_eq!((hidden.programs, hidden.is_synchronised, hidden.source), (None, None, None));
    assert_eq!(hidden.hardware_clocks, Vec::<String>::new());
    let visible = collect(tree(&[("proc/1/comm", "init\n")]).path(), None);
    assert_eq!(visible.programs, Some(Vec::new()));
}
