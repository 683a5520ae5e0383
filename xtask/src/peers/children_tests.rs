//! Programs that do what they should, and programs that do not.

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    Running::start(command).unwrap()
}

#[test]
fn output_is_collected() {
    let (ended, stdout) = shell("echo one; echo two >&2; echo three").finish(LONG).unwrap();
    assert!(ended.status.success());
    assert_eq!(stdout, "one\nthree\n");
}

#[test]
fn a_failure_carries_the_last_words() {
    let error = shell("echo out; echo a >&2; echo b >&2; echo c >&2; echo d >&2; exit 4").finish(LONG);
    let error = error.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("exit status: 4") && error.ends_with("b; c; d"), "{error}");
    assert_eq!(last_words(" \n", "x\n\ny\n"), "x; y");
    assert_eq!(last_words("", "fio: no memory\n{\n  \"a\": 1\n}\n"), "fio: no memory");
    assert_eq!(last_words("", "{\n\"error\": 1}\n"), "{; \"error\": 1}");
}

#[test]
fn what_takes_too_long_is_given_up() {
    let error = shell("exec sleep 600").finish(Duration::from_millis(10));
    assert!(error.map(|_| ()).unwrap_err().to_string().contains("did not end"));
}

#[test]
fn one_that_ends_without_listening_is_no_receiver() {
    let error = shell("exit 0").await_ready(1).unwrap_err().to_string();
    assert!(error.contains("before it listened"), "{error}");
}
