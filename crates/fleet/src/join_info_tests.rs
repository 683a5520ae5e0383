//! The line is read as it was written; any other is refused.
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn welcome() -> JoinInfo {
    JoinInfo {
        fleet: "hall 3".to_owned(),
        controller: SocketAddr::from(([10, 0, 0, 1], 7650)),
        host: 3,
        token: Token::new("0123456789abcdef").unwrap(),
        shared: Token::new("fedcba9876543210").unwrap(),
        tls: Some(AgentTls {
            controller: "its certificate".to_owned(),
            certificate: "own\ncertificate\n".to_owned(),
            key: "secret key".to_owned(),
        }),
        join_time: Duration::from_millis(30_500),
        timing: Timing::trial(),
        volumes: vec!["/data/a b".into()],
    }
}

fn changed(change: impl FnOnce(&mut Value)) -> Result<JoinInfo, FleetError> {
    let mut value: Value = serde_json::from_str(&welcome().to_line().unwrap()).unwrap();
    change(&mut value);
    JoinInfo::read(&mut format!("{value}\n").as_bytes())
}

#[test]
fn a_line_is_read_and_nothing_after_it() {
    let text = welcome().to_line().unwrap() + "rest";
    let mut from = text.as_bytes();
    let read = JoinInfo::read(&mut from).unwrap();
    assert_eq!(from, b"rest");
    assert_eq!(read.to_line().unwrap() + "rest", text);
    let written = welcome();
    assert_eq!((&read.fleet, read.join_time), (&written.fleet, written.join_time));
    assert_eq!(read.tls, written.tls);
    for secret in ["0123456789abcdef", "fedcba9876543210", "secret key"] {
        assert!(text.contains(secret) && !format!("{read:?}").contains(secret));
    }
    let plain = JoinInfo { tls: None, ..welcome() }.to_line().unwrap();
    assert_eq!(JoinInfo::read(&mut plain.as_bytes()).unwrap().tls, None);
}

#[test]
fn another_version_is_named_whatever_else_it_has() {
    let newer = changed(|value| value["version"] = json!(VERSION + 1)).unwrap_err();
    let other = JoinInfo::read(&mut &b"{\"version\":9,\"hello\":1}\n"[..]).unwrap_err();
    assert_eq!(
        other.to_string(),
        format!("cannot join the fleet: the controller uses join line version 9, this agent {VERSION}")
    );
    assert!(newer.to_string().contains(&format!("version {}", VERSION + 1)));
    // That of agents that would ignore `tls`.
    let older = changed(|value| value["version"] = json!(3)).unwrap_err();
    assert!(older.to_string().contains("version 3"), "{older}");
}

#[test]
fn bad_lines_are_refused() {
    assert!(changed(|value| value["token"] = json!("short")).is_err());
    assert!(changed(|value| value["host"] = json!(-1)).is_err());
    let long = vec![b'x'; LINE_BYTES_MAX + 1];
    for (bad, why) in [
        (&b""[..], "no join line on standard input"),
        (b"{}", "no join line on standard input"),
        (&long, "the join line is too long"),
    ] {
        let error = JoinInfo::read(&mut &bad[..]).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot join the fleet: {why}"));
    }
    let volumes = (0..200).map(|n| format!("/{n}{}", "x".repeat(500)).into()).collect();
    assert!(JoinInfo { volumes, ..welcome() }.to_line().is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_refused(bytes: Vec<u8>) {
        prop_assert!(JoinInfo::read(&mut &bytes[..]).is_err());
    }
}
