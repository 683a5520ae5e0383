//! How the recorder and its source are started, and what is read of their accounts.

use super::*;

fn keepup(target: Target, events: Events, streams: u32) -> Keepup {
    Keepup {
        name: "keepup",
        program: PathBuf::from("keepup"),
        target,
        events,
        streams,
        connections: streams.min(8),
    }
}

fn words(command: &Command) -> String {
    let all = std::iter::once(command.get_program()).chain(command.get_args());
    all.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_recorder_goes_where_it_should() {
    let address = "127.0.0.1:1".parse().unwrap();
    let volume = Path::new("/v");
    let null = keepup(Target::Null, Events::Large, 1).receiver(address, volume, None);
    assert_eq!(words(&null), "keepup record --json --name peer --listen 127.0.0.1:1 --to-null");
    let to_volume = keepup(Target::Volume, Events::Large, 1).receiver(address, volume, None);
    assert!(words(&to_volume).ends_with("--volume /v"));
    let parent = tempfile::tempdir().unwrap();
    let memory = Scratch::below(parent.path()).unwrap();
    let in_memory = words(&keepup(Target::Memory, Events::Large, 1).receiver(address, volume, Some(&memory)));
    let expected = format!("{} /v keepup record", memory.path().display());
    assert!(in_memory.starts_with("unshare") && in_memory.contains(&expected), "{in_memory}");
}

#[test]
fn the_source_sends_the_bytes_asked_for() {
    let address = "127.0.0.1:1".parse().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let large = keepup(Target::Null, Events::Large, 1).sender(address, directory.path(), 1 << 30).unwrap();
    assert!(
        words(&large).contains("source csl --rate max --json --to 127.0.0.1:1 --events 4096 --streams 1")
    );
    let many = keepup(Target::Null, Events::Large, 508).sender(address, directory.path(), 1 << 30).unwrap();
    assert!(words(&many).ends_with("--streams 508 --connections 8"));
    let small = keepup(Target::Null, Events::Small, 1).sender(address, directory.path(), 1 << 20).unwrap();
    assert!(words(&small).contains("--events 1024 "));
    assert!(directory.path().join("small.toml").exists());
}

#[test]
fn the_account_says_what_is_durable() {
    let account = r#"{"durable": {"bytes": 1048576000, "events": 4000}, "whole": true}"#;
    assert_eq!(bytes_of(account, "durable").unwrap(), 1_048_576_000);
    assert!(bytes_of(account, "received").is_err());
    assert!(bytes_of("", "durable").is_err());
}

#[test]
fn a_recording_in_memory_is_bounded() {
    assert_eq!(fitting(u64::MAX, u64::MAX), MEMORY_BYTES_MAX / UNIT_BYTES * UNIT_BYTES);
    assert_eq!(fitting(1 << 30, 100 << 30), 1 << 30);
    assert_eq!(fitting(u64::MAX, MEMORY_SPARE_BYTES + UNIT_BYTES + 1), UNIT_BYTES);
    assert_eq!(fitting(u64::MAX, 1), 0);
}
