//! A shell reads what was quoted as one argument.
use std::process::Command;

use super::*;

#[test]
fn a_shell_reads_one_argument() {
    for argument in ["/data/run-1", "/data/run 1", "", "$(id)", "a;b", "it's", "'", "\"\\`*?~", "é"] {
        let script = format!("printf %s {}", quoted(argument));
        let run = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap(), argument, "{script}");
    }
    assert_eq!(quoted("/data/run-1"), "/data/run-1");
}
