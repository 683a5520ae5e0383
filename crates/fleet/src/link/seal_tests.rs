//! Messages are opened only with the key of their host and direction.
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn keys(host: HostId) -> Keys {
    Keys::new(&Secret::new("0123456789").token(host).unwrap())
}

#[test]
fn a_message_is_opened_with_its_own_key_alone() {
    let message = json!({"version": 1, "text": "é"});
    let sealed = keys(1).heartbeats.seal(&message).unwrap();
    assert_eq!(keys(1).heartbeats.open::<Value>(&sealed), Ok(message));
    assert_eq!(keys(2).heartbeats.open::<Value>(&sealed), Err(Refusal::Token), "another host");
    assert_eq!(keys(1).orders.open::<Value>(&sealed), Err(Refusal::Token), "the other direction");
    let other = Keys::new(&Secret::new("another session").token(1).unwrap());
    assert_eq!(other.heartbeats.open::<Value>(&sealed), Err(Refusal::Token));
}

#[test]
fn a_message_that_is_too_long_is_refused_before_it_is_read() {
    let bytes = vec![0; HEARTBEAT_BYTES_MAX + 1];
    let refusal = Refusal::TooLong { bytes: bytes.len(), limit: HEARTBEAT_BYTES_MAX };
    assert_eq!(keys(1).heartbeats.open::<Value>(&bytes), Err(refusal.clone()));
    let text = "x".repeat(HEARTBEAT_BYTES_MAX - HEADER_BYTES - 1);
    assert_eq!(keys(1).heartbeats.seal(&text), Err(refusal), "two quotes");
    assert!(keys(1).heartbeats.seal(&&text[1..]).is_ok());
    assert!(keys(1).orders.seal(&text).is_ok());
}

#[test]
fn another_version_is_named() {
    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Message {
        needed: u32,
    }
    let open = |value: Value| keys(1).heartbeats.open::<Message>(&keys(1).heartbeats.seal(&value).unwrap());
    assert_eq!(open(json!({"needed": 3})), Ok(Message { needed: 3 }));
    assert_eq!(open(json!({"version": 9, "other": 3})), Err(Refusal::Version { theirs: 9 }));
    assert!(matches!(open(json!({"version": VERSION})), Err(Refusal::Malformed(_))));
    assert!(matches!(open(json!("text")), Err(Refusal::Malformed(_))));
}

#[test]
fn secrets_do_not_reach_a_log() {
    assert_eq!(format!("{:?}", Secret::new("abc")), "Secret(…)");
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(keys(1).heartbeats.open::<Value>(&bytes).is_err());
    }

    #[test]
    fn a_changed_bit_is_found(at: prop::sample::Index, bit in 0u8..8) {
        let mut sealed = keys(1).heartbeats.seal(&json!({"version": 1})).unwrap();
        let at = at.index(sealed.len());
        sealed[at] ^= 1 << bit;
        let refusal = if at < MAGIC.len() { Refusal::Foreign } else { Refusal::Token };
        prop_assert_eq!(keys(1).heartbeats.open::<Value>(&sealed), Err(refusal));
    }
}
