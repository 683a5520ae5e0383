//! Commands that end by themselves, and commands that are stopped.
use std::os::unix::process::ExitStatusExt as _;

use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn output_and_exit_status_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let status = run_command(shell("echo out; echo err >&2; exit 5"), place.path(), &|| false).unwrap();
    assert_eq!(status.code(), Some(5));
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!((read(STDOUT), read(STDERR)), ("out\n".to_owned(), "err\n".to_owned()));
}

#[test]
fn a_stopped_command_is_interrupted_once_and_may_clean_up() {
    let place = tempfile::tempdir().unwrap();
    let script = "trap 'echo cleaned; exit 130' INT; touch ready; while :; do sleep 0.05; done";
    let mut command = shell(script);
    command.current_dir(place.path());
    let is_ready = place.path().join("ready");
    let status = run_command(command, place.path(), &|| is_ready.exists()).unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    assert_eq!(std::fs::read_to_string(place.path().join(STDOUT)).unwrap(), "cleaned\n");
}

#[test]
fn a_program_that_is_missing_is_named_in_the_error() {
    let place = tempfile::tempdir().unwrap();
    let why = run_command(Command::new("/nonexistent/program"), place.path(), &|| false).unwrap_err();
    assert!(why.contains("No such file"), "{why}");
}
