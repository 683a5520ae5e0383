//! Dry runs that fail, print too much or do not end.
use std::path::PathBuf;
use std::process::Command;

use super::*;

/// Dry runs of this script of sh; nothing is written.
struct DryRun(&'static str);

impl Program for DryRun {
    fn paths_written(&self, _arguments: &[String]) -> Result<Vec<PathBuf>, String> {
        Ok(Vec::new())
    }

    fn command(&self, _arguments: &[String]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", self.0]);
        command
    }
}

fn checker(script: &'static str, time_max: Duration) -> Arc<Checker> {
    let directories = Directories::open(&[]).unwrap();
    Arc::new(Checker { program: Box::new(DryRun(script)), directories, time_max })
}

fn refusal(script: &'static str) -> Refusal {
    checker(script, TIME_MAX).check(&[], &Arc::default()).unwrap_err()
}

#[test]
fn the_end_of_a_long_error_text_is_kept() {
    let long = refusal(
        "exec >&2; head -c 2000000 /dev/zero | tr '\\0' 'x'; printf '\\377\\nerror: no space\\n'; exit 4",
    );
    assert!(matches!(&long, Refusal::DryRun(status, _) if status.code() == Some(4)), "{long:?}");
    let text = long.text();
    assert!(text.starts_with("[1983634 bytes cut] xxx"), "{}", &text[..40]);
    assert!(text.ends_with("x\u{fffd}\nerror: no space\n") && text.len() < REASON_BYTES_MAX + 40);
    assert_eq!(refusal("exit 3").text(), "its dry run failed: exit status: 3");
    let short = Refusal::Host("ä".repeat(REASON_BYTES_MAX)).text();
    assert!(short.starts_with("ää") && short.ends_with("ä [16384 bytes cut]"));
}

#[test]
fn a_plan_that_is_too_long_is_an_error() {
    let why = refusal("head -c 2000000 /dev/zero").text();
    assert_eq!(why, "cannot read the output of the dry run: more than 1048576 bytes");
}

#[test]
fn a_check_that_does_not_end_is_given_up() {
    let checker = checker("exec sleep 60", Duration::from_millis(200));
    let why = checker.check(&[], &Arc::default()).unwrap_err().text();
    assert_eq!(why, "the check took longer than 0.2 s: a file system may not respond");
}

#[test]
fn a_check_that_is_stopped_starts_no_further_command() {
    let stop = Arc::new(AtomicBool::new(true));
    let found = checker("exit 3", TIME_MAX).check_all(&[Vec::new(), Vec::new()], &stop);
    assert_eq!(found, [(); 2].map(|()| CheckedCommand::Refused("it was not checked".to_owned())));
}
