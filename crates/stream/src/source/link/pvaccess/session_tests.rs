//! A client's requests and their answers. The requests are written here from the protocol's description.
use proptest::prelude::*;

use super::*;

/// A message of a client.
fn message(is_big_endian: bool, command: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32;
    let (flags, length) =
        if is_big_endian { (0x80, length.to_be_bytes()) } else { (0, length.to_le_bytes()) };
    [&[0xCA, 2, flags, command][..], &length, body].concat()
}

fn number(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8][..], text.as_bytes()].concat()
}

fn create(id: u32, name: &str) -> Vec<u8> {
    message(false, 7, &[&[1, 0][..], &number(id), &text(name)].concat())
}

fn monitor(channel: u32, request: u32, subcommand: u8, rest: &[u8]) -> Vec<u8> {
    message(false, 13, &[&number(channel)[..], &number(request), &[subcommand], rest].concat())
}

fn session() -> Session {
    let mut session = Session::new(vec![0x42], 5075);
    let greeting = answers(&mut session);
    assert_eq!(greeting.iter().map(|(command, _)| *command).collect::<Vec<_>>(), [2, 1]);
    session
}

/// A session with a monitor that has a queue of this length; 0: no pipeline.
fn monitored(queue: u32) -> Session {
    let mut session = session();
    session.received(&create(9, PV_NAME)).unwrap();
    let (subcommand, queue) = if queue == 0 { (0x08, vec![]) } else { (0x88, number(queue).to_vec()) };
    session.received(&monitor(1, 5, subcommand, &[&[0x80, 0, 0][..], &queue].concat())).unwrap();
    assert_eq!((session.status(), session.credit()), (Status::Waiting, 0));
    session.received(&monitor(1, 5, 0x44, &[])).unwrap();
    assert_eq!(session.status(), Status::Running);
    answers(&mut session);
    session
}

/// Messages of the server since the last call: command and body.
fn answers(session: &mut Session) -> Vec<(u8, Vec<u8>)> {
    let (bytes, mut found) = (session.output().to_vec(), Vec::new());
    session.sent(bytes.len());
    let mut rest = &bytes[..];
    while let Some((head, tail)) = rest.split_first_chunk::<8>() {
        assert_eq!((head[0], head[1], head[2] & 0xFE), (0xCA, 2, 0x40));
        let (body, tail) = tail.split_at(u32::from_le_bytes(*head.last_chunk().unwrap()) as usize);
        found.push((head[3], body.to_vec()));
        rest = tail;
    }
    assert!(rest.is_empty());
    found
}

fn answer(session: &mut Session, request: &[u8]) -> (u8, Vec<u8>) {
    session.received(request).unwrap();
    let mut found = answers(session);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn a_monitor_is_created_over_an_anonymous_connection() {
    let mut session = session();
    let choice = [&number(0x1_0000)[..], &[0xFF, 0x7F, 0, 0], &text("anonymous"), &[0xFF]].concat();
    assert_eq!(answer(&mut session, &message(false, 1, &choice)), (9, vec![0xFF]));
    let created = [&number(9)[..], &number(1), &[0xFF]].concat();
    assert_eq!(answer(&mut session, &create(9, PV_NAME)), (7, created));
    let init = [&number(5)[..], &[0x08, 0xFF, 0x42]].concat();
    assert_eq!(answer(&mut session, &monitor(1, 5, 0x08, &[0x80, 0, 0])), (13, init));
    let field = message(false, 17, &[&number(1)[..], &number(6), &[0]].concat());
    assert_eq!(answer(&mut session, &field), (17, [&number(6)[..], &[0xFF, 0x42]].concat()));
    assert_eq!(answer(&mut session, &message(false, 2, b"ping")), (2, b"ping".to_vec()));
}

#[test]
fn searches_are_answered_with_the_port() {
    let mut session = session();
    let search = |flags: u8, name: &str| {
        let head = [&number(77)[..], &[flags, 0, 0, 0], &[0; 16], &[0, 0], &[1], &text("tcp")].concat();
        message(false, 3, &[&head[..], &[1, 0], &number(3), &text(name)].concat())
    };
    let (command, body) = answer(&mut session, &search(0, PV_NAME));
    assert_eq!((command, &body[12..16]), (4, &number(77)[..]));
    let rest = [&[0; 16][..], &5075_u16.to_le_bytes(), &text("tcp"), &[1, 1, 0], &number(3)].concat();
    assert_eq!(body[16..], rest);
    session.received(&search(0, "OTHER")).unwrap();
    assert_eq!(answers(&mut session), []);
    let (_, body) = answer(&mut session, &search(1, "OTHER"));
    assert!(body.ends_with(&[0, 0, 0]));
}

#[test]
fn the_queue_of_the_client_limits_the_images() {
    let mut session = monitored(4);
    session.push_update(b"");
    assert_eq!(session.credit(), 3);
    session.spend(3);
    assert_eq!((session.credit(), session.unacknowledged()), (0, Some(4)));
    session.received(&monitor(1, 5, 0x80, &number(2))).unwrap();
    assert_eq!(session.credit(), 2);
    // Not more than was sent.
    session.received(&monitor(1, 5, 0x80, &number(u32::MAX))).unwrap();
    assert_eq!((session.credit(), session.unacknowledged()), (4, Some(0)));
    session.received(&monitor(1, 5, 0x04, &[])).unwrap();
    assert_eq!((session.credit(), session.status()), (0, Status::Waiting));
    session.received(&monitor(1, 5, 0x44, &[])).unwrap();
    assert_eq!(session.credit(), 4);
    let endless = monitored(0);
    assert_eq!((endless.credit(), endless.unacknowledged()), (u64::MAX, None));
}

#[test]
fn queues_of_big_endian_clients_are_understood() {
    let mut session = session();
    session.received(&create(9, PV_NAME)).unwrap();
    let (channel, request, queue) = (1_u32.to_be_bytes(), 5_u32.to_be_bytes(), 6_u32.to_be_bytes());
    let init = [&channel[..], &request, &[0x88, 0x80, 0, 0], &queue].concat();
    session.received(&message(true, 13, &init)).unwrap();
    session.received(&message(true, 13, &[&channel[..], &request, &[0x44]].concat())).unwrap();
    assert_eq!(session.credit(), 6);
}

#[test]
fn a_monitor_ends_with_its_request_or_channel() {
    let two = [number(1), number(5)].concat();
    for (command, body) in [(15, two), (8, [number(1), number(9)].concat())] {
        let mut session = monitored(4);
        session.received(&message(false, command, &body)).unwrap();
        answers(&mut session);
        assert_eq!((session.status(), session.credit()), (Status::Ended, 0));
        let (_, body) = answer(&mut session, &monitor(1, 6, 0x08, &[0x80, 0, 0]));
        assert_eq!(body[5], 2, "another one is refused");
    }
}

#[test]
fn what_the_simulator_does_not_serve_is_refused() {
    let mut session = session();
    let (_, body) = answer(&mut session, &create(9, "OTHER"));
    assert!(body[8] == 2 && body.ends_with(b"the only PV is SIM:Pva1:Image\0"), "{body:?}");
    let (_, body) = answer(&mut session, &monitor(1, 5, 0x08, &[0x80, 0, 0]));
    assert_eq!(body[5], 2);
    let get = message(false, 10, &[&number(1)[..], &number(5), &[0x08]].concat());
    assert_eq!(answer(&mut session, &get).1[..6], [5, 0, 0, 0, 8, 2]);
    let mut monitored = monitored(4);
    let (_, body) = answer(&mut monitored, &monitor(1, 6, 0x08, &[0x80, 0, 0]));
    assert_eq!((body[5], monitored.status()), (2, Status::Running));
}

#[test]
fn hostile_clients_are_refused() {
    let cases: [(Vec<u8>, &str); 4] = [
        (b"GET / HTTP/1.1".to_vec(), "did not send a pvAccess header"),
        ([&[0xCA, 2, 0x40, 1][..], &number(0)].concat(), "flags 0x40"),
        ([&[0xCA, 2, 0x10, 1][..], &number(0)].concat(), "flags 0x10"),
        ([&[0xCA, 2, 0, 1][..], &number(u32::MAX)].concat(), "4294967295 bytes"),
    ];
    for (bytes, why) in cases {
        let error = session().received(&bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let echo = message(false, 2, &[0; 60_000]);
    let mut silent = session();
    let error = (0..10).find_map(|_| silent.received(&echo).err()).unwrap().to_string();
    assert!(error.contains("does not read"), "{error}");
    let mut greedy = session();
    (0..100).for_each(|id| greedy.received(&create(id, PV_NAME)).unwrap());
    assert_eq!(greedy.channels.len(), CHANNELS_MAX);
}

proptest! {
    #[test]
    fn any_bytes_leave_a_bounded_state(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut session = monitored(4);
        let _ = session.received(&message(false, bytes.first().copied().unwrap_or(0), &bytes));
        let _ = session.received(&bytes);
        prop_assert!(session.channels.len() <= CHANNELS_MAX && session.output().len() <= 1 << 20);
    }

    #[test]
    fn answers_do_not_depend_on_how_requests_arrive(piece in 1_usize..200) {
        let requests = subscription();
        let mut whole = session();
        whole.received(&requests).unwrap();
        let mut cut = session();
        for piece in requests.chunks(piece) {
            cut.received(piece).unwrap();
        }
        prop_assert_eq!(whole.output(), cut.output());
        prop_assert_eq!((whole.status(), cut.credit()), (Status::Running, u64::MAX));
    }
}
