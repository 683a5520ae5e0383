//! What is read out of fio's JSON, and which settings are tried.

use super::*;

const REPORT: &str = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "peer", "error": 0,
    "job_runtime": 823, "write": {"io_bytes": 1073741824, "bw_bytes": 1303084737, "runtime": 824}}]}"#;

#[test]
fn the_runtime_of_the_job_is_taken() {
    assert_eq!(job(REPORT).unwrap(), (1_073_741_824, 0.823));
    assert_eq!(job(&format!("fio: a warning\n{REPORT}\n")).unwrap(), (1_073_741_824, 0.823));
}

#[test]
fn a_job_that_failed_is_no_result() {
    let failed = REPORT.replace("\"error\": 0", "\"error\": 28");
    assert!(job(&failed).unwrap_err().to_string().contains("error 28"));
    assert!(job(r#"{"jobs": []}"#).is_err());
    assert!(job("fio: no").is_err());
    assert!(job(&REPORT.replace("job_runtime", "else")).is_err());
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
