//! Two runs and their difference.

use std::time::Duration;

use super::*;

fn run(bytes: u64, seconds: f64, cpu_ns: u64, billed_ns: Option<u64>) -> Run {
    Run { bytes, seconds, cpu_ns: Some(cpu_ns), billed_ns, ..Run::default() }
}

#[test]
fn what_is_in_both_is_in_neither() {
    let found = difference(&run(900, 9.0, 70, Some(45)), &run(100, 1.0, 30, Some(5))).unwrap();
    assert_eq!(found, run(800, 8.0, 40, Some(40)));
    let found = difference(&run(900, 9.0, 70, None), &run(100, 1.0, 30, Some(5))).unwrap();
    assert_eq!(found.billed_ns, None);
}

#[test]
fn runs_of_the_same_length_have_no_slope() {
    let error = difference(&run(900, 9.0, 70, None), &run(800, 8.0, 70, None)).unwrap_err().to_string();
    assert!(error.contains("is too small"), "{error}");
    assert!(difference(&run(0, 0.0, 0, None), &run(0, 0.0, 0, None)).is_err());
    let error = difference(&run(900, 9.0, 30, None), &run(100, 1.0, 70, None)).unwrap_err().to_string();
    assert!(error.contains("no more CPU"), "{error}");
}

#[test]
fn both_run_and_leave_nothing() {
    let program = |bytes: u64| Program {
        name: "shell",
        program: "/bin/sh".into(),
        arguments: [
            "-c".to_owned(),
            format!("n=0; while [ $n -lt {bytes}00 ]; do n=$((n + 1)); done; echo x > file; ls"),
        ]
        .to_vec(),
        shown: None,
        tool: None,
        read: Box::new(move |said| {
            ensure!(said == "file\n", "the directory has nothing else: {said}");
            Ok(vec![Run { bytes, seconds: bytes as f64, ..Run::default() }])
        }),
    };
    let directory = tempfile::tempdir().unwrap();
    let limits = RunLimits { directory: directory.path(), bytes: 0, time: Duration::from_secs(60) };
    let slope = Slope { short: program(1), long: program(9000) };
    let runs = slope.run(&limits).unwrap();
    assert_eq!((runs.len(), runs[0].bytes, runs[0].seconds), (1, 8999, 8999.0));
    assert!(slope.command().contains(" less "));
    assert!(fs::read_dir(directory.path()).unwrap().next().is_none());
}
