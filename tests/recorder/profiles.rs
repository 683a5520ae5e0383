//! Profiles on the command line.
use crate::common::{directory, keepup};

#[test]
fn built_in_profiles_are_listed_and_shown() {
    let directory = directory();
    let list = keepup(directory.path(), &["profile", "list"]);
    assert_eq!(list.code(), 0);
    assert!(list.stdout.lines().count() > 26, "{list:#?}");
    let show = keepup(directory.path(), &["profile", "show", "csl"]);
    assert!(show.stdout.contains("262144") && show.stdout.contains("80.0 MB/s"), "{show:#?}");
}

#[test]
fn a_similar_profile_name_is_suggested() {
    let directory = directory();
    let run = keepup(directory.path(), &["qualify", "csll"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("csl") && run.stderr.contains("hint: "), "{run:#?}");
}

#[test]
fn an_error_in_a_profile_names_key_and_line() {
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
fn a_source_without_a_recorder_gets_a_hint() {
    let directory = directory();
    let run = keepup(directory.path(), &["source", "csl", "--to", "127.0.0.1:1"]);
    assert_eq!(run.code(), 4);
    assert!(run.stderr.contains("hint: ") && run.stderr.contains("keepup record"), "{run:#?}");
}
