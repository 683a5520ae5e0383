//! How both are started, and what is read out of their results.

use super::*;
use crate::peers::contestant::Figure;
use crate::peers::replay::traces;

/// Passes of a result, but for what is not read.
const SUMMARY: &str = r#"{"failure": null, "passes": [
    {"is_cold": true, "requests": 10, "seconds": 9.0, "cpu_seconds": 9.0, "failed": 0,
     "lateness": {"p50_ns": 900, "p99_ns": 900, "max_ns": 900}, "fidelity": {"span_error": 0.5}},
    {"is_cold": false, "requests": 10, "seconds": 2.0, "cpu_seconds": 0.5, "failed": 0,
     "lateness": {"p50_ns": 30, "p99_ns": 70, "max_ns": 200}, "fidelity": {"span_error": 0.0002}},
    {"is_cold": false, "requests": 10, "seconds": 3.0, "cpu_seconds": 0.5, "failed": 0,
     "lateness": {"p50_ns": 40, "p99_ns": 60, "max_ns": 100}, "fidelity": {"span_error": 0.0001}}]}"#;

#[test]
fn warm_passes_are_summed_and_the_worse_lateness_counts() {
    let run = read_keepup(SUMMARY, None).unwrap();
    assert_eq!(Figure::Operations.of(&run), Some(4.0));
    assert_eq!(Figure::RequestCpu.of(&run), Some(50_000.0));
    assert_eq!(run.span_error, Some(0.0002));
    assert_eq!(run.lateness, Some(Lateness { p50_ns: 40, p99_ns: 70, max_ns: 200 }));
    assert_eq!(read_keepup(SUMMARY, Some(2.0)).unwrap().span_error, Some(0.25));
}

#[test]
fn what_failed_is_no_result() {
    let failed = |what: &str, by: &str| read_keepup(&SUMMARY.replace(what, by), None).unwrap_err();
    assert!(failed("\"failure\": null", "\"failure\": \"no room\"").to_string().contains("no room"));
    assert!(failed("\"failed\": 0", "\"failed\": 1").to_string().contains("failed"));
    assert!(failed("false", "true").to_string().contains("no pass that counts"));
    assert!(failed("seconds", "else").to_string().contains("no rate"));
    assert!(read_keepup("{}", None).is_err());
}

#[test]
fn fio_must_have_made_all_requests() {
    let report = r#"{"jobs": [{"jobname": "peer", "error": 0, "job_runtime": 5009, "usr_cpu": 50.0,
        "sys_cpu": 0.0, "read": {"io_bytes": 5120000, "total_ios": 1250},
        "write": {"io_bytes": 0, "total_ios": 0}}]}"#;
    let run = read_fio(report, traces::SLOW).unwrap();
    assert!((run.span_error.unwrap() - (5.009 / 4.996 - 1.0)).abs() < 1e-12);
    assert!((Figure::RequestCpu.of(&run).unwrap() - 2003.6).abs() < 1e-9);
    assert_eq!(run.lateness, None);
    let fewer = read_fio(&report.replace("1250", "1249"), traces::SLOW).unwrap_err().to_string();
    assert!(fewer.contains("of 1250 requests"), "{fewer}");
}

#[test]
fn both_read_the_same_file() {
    let (path, program) = (Path::new("/t/reads.iolog"), Path::new("/b/keepup"));
    let ours = keepup(program, "keepup", path, Target::File, "afap --depth 8", None);
    let file = "--volume . --engine io_uring --access direct";
    assert_eq!(ours.command(), format!("`keepup replay /t/reads.iolog {file} --mode afap --depth 8 --json`"));
    let theirs = fio("fio", path, traces::READS, Target::File, "--ioengine=sync");
    let command = theirs.command();
    assert!(command.contains("--name=peer --read_iolog=/t/reads.iolog --ioengine=sync"), "{command}");
    assert!(ours.before.is_none() && theirs.before.unwrap().contains(&format!("--size={FILE_BYTES}")));
    assert!(fio("fio", path, traces::READS, Target::Nowhere, "").before.is_none());
}
