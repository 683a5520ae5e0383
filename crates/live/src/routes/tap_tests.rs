//! The tap over real WebSockets.
use std::io::Write;

use crate::EventCopy;
use crate::testing::{TestTapSource, card, event, frame, get, server, server_with_tap, subscribe};

fn put(subscribers: &TestTapSource, stream: u32, sequence: u64) {
    subscribers.put(EventCopy::new(card(stream, sequence), vec![1, 2, 3, 4]));
}

#[test]
fn an_event_arrives_with_its_description() {
    let (live, subscribers) = server_with_tap(16);
    let mut socket = subscribe(live.address(), "stream=3", "").unwrap();
    put(&subscribers, 3, 41);
    let (head, payload) = event(&mut socket);
    assert_eq!(payload, [1, 2, 3, 4]);
    assert_eq!(head["sequence"], 41);
    assert_eq!(
        (&head["stream"], &head["name"], &head["element"]),
        (&3.into(), &"a \"b\"".into(), &"u8".into())
    );
    assert_eq!((&head["shape"], &head["missed"]), (&serde_json::json!([2, 2]), &0.into()));
}

#[test]
fn a_reading_subscriber_gets_all_of_a_burst_larger_than_its_queue() {
    let (live, subscribers) = server_with_tap(16);
    let mut socket = subscribe(live.address(), "", "").unwrap();
    (0..200).for_each(|sequence| put(&subscribers, 3, sequence));
    let sequences: Vec<u64> = (0..200).map(|_| event(&mut socket).0["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.into_iter().eq(0..200));
}

#[test]
fn a_preview_is_thinned_and_has_the_original_shape() {
    let (live, subscribers) = server_with_tap(16);
    let mut socket = subscribe(live.address(), "preview=1", "").unwrap();
    put(&subscribers, 3, 0);
    let (head, payload) = event(&mut socket);
    assert_eq!(payload, [1]);
    assert_eq!(
        (&head["shape"], &head["whole_shape"]),
        (&serde_json::json!([1, 1]), &serde_json::json!([2, 2]))
    );
    assert_eq!(head["bytes"], 4);
}

#[test]
fn a_report_comes_at_once_and_periodically() {
    let live = server(false, 16);
    let mut socket = subscribe(live.address(), "", "").unwrap();
    let (opcode, text) = frame(&mut socket);
    assert_eq!((opcode, text.as_slice()), (1, br#"{"sent":0,"missed":0}"#.as_slice()));
}

#[test]
fn a_flooding_subscriber_is_disconnected_with_a_reason() {
    let live = server(false, 16);
    let mut socket = subscribe(live.address(), "", "").unwrap();
    // A masked text frame of one byte, with a mask of zeros.
    for _ in 0..200 {
        if socket.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'x']).is_err() {
            break;
        }
    }
    let close = loop {
        let (opcode, payload) = frame(&mut socket);
        if opcode == 8 {
            break payload;
        }
    };
    assert_eq!(u16::from_be_bytes([close[0], close[1]]), 1008);
    assert_eq!(&close[2..], b"too many messages");
}

#[test]
fn a_giant_message_ends_the_connection_and_frees_the_subscription() {
    let live = server(false, 16);
    for _ in 0..70 {
        let mut socket = subscribe(live.address(), "", "").unwrap();
        // A header that announces a gigabyte.
        socket.write_all(&[0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut socket, &mut rest);
    }
    assert!(subscribe(live.address(), "", "").is_ok(), "subscriptions are released");
}

#[test]
fn refusals_have_a_status() {
    let live = server(false, 200);
    assert_eq!(get(&live, "/api/v1/tap?stream=x").status, 400);
    assert_eq!(get(&live, "/api/v1/tap").status, 426);
    let foreign = subscribe(live.address(), "", "Origin: http://evil.example\r\n").unwrap_err();
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let held: Vec<_> = (0..64).map(|_| subscribe(live.address(), "", "").unwrap()).collect();
    let refused = subscribe(live.address(), "", "").unwrap_err();
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    drop(held);
}
