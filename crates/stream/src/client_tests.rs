//! One connection with the test receiver: success, refusal, silence, giving up.

use std::net::TcpListener;

use keepup_error::Cause;

use super::*;
use crate::receiver::{Behaviour, receive};
use crate::wire::{ElementType, EndStream, ErrorReply, FrameKind, HEADER_BYTES, Header, StreamInfo};

const TIMEOUT: Duration = Duration::from_secs(20);

fn hello(ids: &[u32]) -> Hello {
    let stream = |id: &u32| StreamInfo {
        id: *id,
        name: format!("s{id}"),
        element: ElementType::U8,
        shape: Vec::new(),
        compression: None,
    };
    Hello::new("test", ids.iter().map(stream).collect())
}

fn event(stream: u32, sequence: u64, payload: &[u8]) -> [u8; HEADER_BYTES] {
    Header { stream, sequence, ..Header::control(FrameKind::Event, payload) }.encode()
}

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn end(id: u32, events: u64, bytes: u64) -> End {
    End {
        streams: vec![EndStream { id, events, bytes, lost_events: 0, lost_bytes: 0, next_sequence: events }],
    }
}

#[test]
fn many_slices_arrive_in_order_and_are_acknowledged() {
    let (addr, receiver) = receive(1, Behaviour::default);
    let (mut client, welcome) = Client::connect(addr, &hello(&[3]), TIMEOUT).unwrap();
    assert_eq!((welcome.recording.as_str(), client.acks().len()), ("test", 1));
    // More slices than one system call accepts, some of them empty.
    let payloads: Vec<Vec<u8>> = (0..900usize).map(|n| vec![n as u8; n % 700]).collect();
    let headers: Vec<_> = (0..).zip(&payloads).map(|(n, payload)| event(3, n, payload)).collect();
    let mut slices: Vec<IoSlice<'_>> = vec![IoSlice::new(&[])];
    for (header, payload) in headers.iter().zip(&payloads) {
        slices.extend([IoSlice::new(header), IoSlice::new(payload)]);
    }
    assert_eq!(client.send(&mut &mut slices[..], &mut go_on).unwrap(), Sent::All);
    while client.acks()[0].durable_next < 900 {
        poll_slice(&client.socket, PollFlags::IN).unwrap();
        client.poll_acks().unwrap();
    }
    assert_eq!(client.acks()[0].received_next, 900);
    let bytes = payloads.iter().map(|p| p.len() as u64).sum();
    let bye = client.finish(&end(3, 900, bytes), TIMEOUT).unwrap();
    assert_eq!((bye.streams[0].received_events, bye.streams[0].received_bytes), (900, bytes));
    assert_eq!(receiver.join().unwrap()[0].streams[&3].bad_checksums, 0);
}

#[test]
fn acks_start_at_the_welcomes_position() {
    let (addr, receiver) = receive(1, || Behaviour { next_sequence: 77, ..Behaviour::default() });
    let (client, _) = Client::connect(addr, &hello(&[1, 2]), TIMEOUT).unwrap();
    assert_eq!(client.acks(), [Acked { received_next: 77, ..Acked::default() }; 2]);
    drop(client);
    receiver.join().unwrap();
}

#[test]
fn a_refusal_is_reported_in_the_recorders_words() {
    let reply = ErrorReply { error: "no space\u{1b}[2J".to_owned(), hint: "free some".to_owned() };
    let (addr, receiver) =
        receive(1, move || Behaviour { refuse: Some(reply.clone()), ..Behaviour::default() });
    let error = Client::connect(addr, &hello(&[1]), TIMEOUT).unwrap_err();
    assert_eq!(error.to_string(), "the recorder refused: no space\u{fffd}[2J");
    assert_eq!(error.hint().as_deref(), Some("free some"));
    receiver.join().unwrap();
}

#[test]
fn a_refusal_after_the_welcome_is_reported_too() {
    let reply = ErrorReply { error: "no volume takes more data".to_owned(), hint: String::new() };
    let (addr, receiver) =
        receive(1, move || Behaviour { refuse_after_welcome: Some(reply.clone()), ..Behaviour::default() });
    // If the refusal arrives separately, the next poll reads it.
    let connected = Client::connect(addr, &hello(&[1]), TIMEOUT);
    let error = connected.and_then(|(client, _)| client.finish(&end(1, 0, 0), TIMEOUT)).unwrap_err();
    assert_eq!(error.to_string(), "the recorder refused: no volume takes more data");
    receiver.join().unwrap();
}

#[test]
fn a_violation_ends_with_the_recorders_reason() {
    let (addr, receiver) = receive(1, Behaviour::default);
    let (mut client, _) = Client::connect(addr, &hello(&[1]), TIMEOUT).unwrap();
    let header = event(9, 0, b"");
    client.send(&mut &mut [IoSlice::new(&header)][..], &mut go_on).unwrap();
    let error = client.finish(&end(1, 0, 0), TIMEOUT).unwrap_err();
    assert!(
        matches!(&error, ClientError::Refused { error, .. } if error.contains("stream 9 was not declared"))
    );
    receiver.join().unwrap();
}

#[test]
fn a_refused_connection_names_the_command_to_start() {
    let names_the_command = |_| {
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed at once
        let error = Cause::of(&Client::connect(addr, &hello(&[1]), TIMEOUT).unwrap_err()).to_text();
        error.contains(&format!("hint: start the recorder first: `keepup record --listen {addr}`"))
    };
    // A child process started by another test may hold the port a little longer.
    assert!((0..100).any(names_the_command));
}

#[test]
fn a_silent_peer_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let error = Client::connect(addr, &hello(&[1]), Duration::from_millis(60)).unwrap_err();
    assert!(matches!(error, ClientError::TimedOut { action: "wait for a welcome from", .. }), "{error}");
}

#[test]
fn an_invalid_hello_is_not_sent() {
    let addr: std::net::SocketAddr = "127.0.0.1:9".parse().unwrap();
    let error = Client::connect(addr, &hello(&[1, 1]), TIMEOUT).unwrap_err();
    assert!(matches!(error, ClientError::Wire(WireError::Invalid { kind: FrameKind::Hello, .. })));
}

#[test]
fn a_send_to_a_full_socket_can_stop_and_continue() {
    let (gate, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(Some(wait));
    let (addr, receiver) = receive(1, move || {
        let wait = wait.lock().unwrap().take().unwrap();
        Behaviour { before_reading: Box::new(move || wait.recv().unwrap()), ..Behaviour::default() }
    });
    let (mut client, _) = Client::connect(addr, &hello(&[1]), TIMEOUT).unwrap();
    let payload = vec![7u8; 64 << 20]; // more than both socket buffers hold
    let header = event(1, 0, &payload);
    let mut slices = [IoSlice::new(&header), IoSlice::new(&payload)];
    let mut rest = &mut slices[..];
    let mut calls = 0;
    let mut give_up = || {
        calls += 1;
        if calls > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert_eq!(client.send(&mut rest, &mut give_up).unwrap(), Sent::Stopped);
    let left: usize = rest.iter().map(|slice| slice.len()).sum();
    assert!(left > 0 && left < payload.len());
    assert!(client.blocked_ns() > 0 && client.blocked_ns() >= client.longest_blocked_ns());
    gate.send(()).unwrap();
    assert_eq!(client.send(&mut rest, &mut go_on).unwrap(), Sent::All);
    client.finish(&end(1, 1, payload.len() as u64), TIMEOUT).unwrap();
    let talk = &receiver.join().unwrap()[0];
    assert_eq!((talk.streams[&1].received.bytes, talk.streams[&1].bad_checksums), (64 << 20, 0));
}
