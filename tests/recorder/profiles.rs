//! Profiles on the command line.
use crate::common::{directory, keepup};

#[test]
fn lists_and_shows_what_is_built_in() {
    let directory = directory();
    let list = keepup(directory.path(), &["profile", "list"]);
    assert_eq!(list.code(), 0);
    assert!(list.stdout.lines().count() > 26, "{list:#?}");
    let show = keepup(directory.path(), &["profile", "show", "csl"]);
    assert!(show.stdout.contains("262144") && show.stdout.contains("80.0 MB/s"), "{show:#?}");
}

#[test]
fn a_name_that_is_nearly_right_is_told() {
    let directory = directory();
    let run = keepup(directory.path(), &["qualify", "csll"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("csl") && run.stderr.contains("hint: "), "{run:#?}");
}

#[test]
fn a_fault_in_a_file_is_named_with_key_and_line() {
    let directory = directory();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, "name = \"mine\"\nextends = \"csl\"\n[source]\nrate = \"80 Mb/s\"\n").unwrap();
    let run = keepup(directory.path(), &["profile", "check", "mine.toml"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("mine.toml:4") && run.stderr.contains("source.rate"), "{run:#?}");
    std::fs::write(&file, "name = \"mine\"\nextends = \"csl\"\n[source]\nspeed = \"80 MB/s\"\n").unwrap();
    let run = keepup(directory.path(), &["source", "./mine.toml", "--to", "127.0.0.1:1"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("speed"), "{run:#?}");
}

#[test]
fn nobody_listening_is_said_with_the_command_that_helps() {
    let directory = directory();
    let run = keepup(directory.path(), &["source", "csl", "--to", "127.0.0.1:1"]);
    assert_eq!(run.code(), 4);
    assert!(run.stderr.contains("hint: ") && run.stderr.contains("keepup record"), "{run:#?}");
}
