//! What is read out of fio's JSON, and which settings are tried.

use super::*;

const REPORT: &str = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "peer", "error": 0,
    "job_runtime": 823, "write": {"io_bytes": 1073741824, "bw_bytes": 1303084737, "runtime": 824}}]}"#;

/// As fio 3.33 printed it, but for what is not read.
const JOBS: &str = r#"{"fio version": "fio-3.33", "jobs": [
    {"jobname": "fill", "error": 0, "job_runtime": 660, "usr_cpu": 2.878788, "sys_cpu": 1.363636,
     "read": {"io_bytes": 0}, "write": {"io_bytes": 268435456, "runtime": 661}},
    {"jobname": "read 1 MiB x 8", "error": 0, "job_runtime": 500, "usr_cpu": 2.0, "sys_cpu": 3.0,
     "read": {"io_bytes": 645922816, "runtime": 503}, "write": {"io_bytes": 0}}]}"#;

#[test]
fn the_runtime_of_the_job_is_taken() {
    for said in [REPORT.to_owned(), format!("fio: a warning\n{REPORT}\n")] {
        let jobs = jobs(&said).unwrap();
        assert_eq!((jobs.len(), jobs[0].bytes, jobs[0].seconds), (1, 1_073_741_824, 0.823));
        assert_eq!(jobs[0].billed_ns, None);
    }
}

#[test]
fn every_job_tells_of_itself() {
    let jobs = jobs(JOBS).unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job.phase.as_str()).collect();
    assert_eq!(names, ["fill", "read 1 MiB x 8"]);
    assert_eq!((jobs[1].bytes, jobs[1].seconds, jobs[1].billed_ns), (645_922_816, 0.5, Some(25_000_000)));
}

#[test]
fn a_job_that_failed_is_no_result() {
    let failed = REPORT.replace("\"error\": 0", "\"error\": 28");
    assert!(jobs(&failed).unwrap_err().to_string().contains("error 28"));
    assert!(jobs(r#"{"jobs": {}}"#).is_err());
    assert!(jobs("fio: no").is_err());
    assert!(jobs(&REPORT.replace("job_runtime", "else")).is_err());
}

#[test]
fn every_setting_is_tried_once() {
    let settings: Vec<String> = Fio::settings().iter().map(Fio::setting).collect();
    assert_eq!(settings.len(), 8);
    assert_eq!((settings[0].as_str(), settings[7].as_str()), ("1 MiB x 4", "4 MiB x 32"));
    let command = Fio { block_mib: 4, depth: 16 }.command();
    assert!(command.contains("--bs=4m --iodepth=16"), "{command}");
    assert!(!command.contains("json"), "{command}");
}
