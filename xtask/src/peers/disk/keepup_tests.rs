//! What is read out of a disk test's result.

use super::*;

/// What a result has, but for what is not read.
const SUMMARY: &str = r#"{"workload": "sweep", "failure": null, "runs": [{"volumes": ["."], "phases": [
    {"name": "write 65536 B depth 8", "bytes": 1000, "operations": 5, "seconds": 0.5, "cpu_seconds": 0.25},
    {"name": "write 1 at once", "bytes": 7, "operations": null, "seconds": 1.0, "cpu_seconds": 0.0},
    {"name": "seek, cached", "bytes": 8192, "operations": 2, "seconds": 1.0, "cpu_seconds": 0.1}]}]}"#;

#[test]
fn phases_have_the_names_of_the_tables() {
    let phases = phases(SUMMARY).unwrap();
    let names: Vec<&str> = phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert_eq!(names, ["write 64 KiB x 8", "write 1 at once", "seeks"]);
    let first = &phases[0];
    assert_eq!((first.bytes, first.events, first.seconds), (1000, Some(5), 0.5));
    assert_eq!(first.billed_ns, Some(250_000_000));
    assert_eq!((phases[2].bytes, phases[2].events), (0, Some(2)), "seeks are counted, not bytes");
    assert_eq!(plain("rewrite, cached"), "rewrite");
    assert_eq!(plain("create 512 x 8 MiB"), "create 512 x 8 MiB");
}

#[test]
fn what_was_cut_short_is_no_result() {
    let failed = SUMMARY.replace("\"failure\": null", "\"failure\": \"no room\"");
    assert!(phases(&failed).unwrap_err().to_string().contains("no room"));
    assert!(phases(r#"{"failure": null, "runs": []}"#).is_err());
    assert!(phases("").is_err());
}

#[test]
fn the_command_is_the_one_people_type() {
    let program = test(Path::new("/t/keepup"), "keepup", "sweep", &["--sizes", "1 MiB"]);
    assert_eq!(program.shown(), "`keepup disk sweep --json --volume . --sizes '1 MiB'`");
    assert!(!has_test(Path::new("/no/such/program"), "sweep"));
    assert!(!has_test(Path::new("false"), "sweep") && has_test(Path::new("true"), "sweep"));
}
