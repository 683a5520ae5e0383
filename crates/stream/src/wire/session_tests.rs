//! The receiver's state machine: the legal sequence, every refusal, arbitrary bytes.

use proptest::prelude::*;

use super::*;
use crate::ledger::LossCause;
use crate::wire::{ElementType, EndStream};

const LIMITS: Limits = Limits { max_event_bytes: 1000, max_control_bytes: 4096, max_streams: 3 };

fn streams(ids: &[u32]) -> Vec<StreamInfo> {
    let stream = |id: &u32| StreamInfo {
        id: *id,
        name: format!("s{id}"),
        element: ElementType::U8,
        shape: Vec::new(),
        compression: None,
    };
    ids.iter().map(stream).collect()
}

fn event(stream: u32, length: u64) -> [u8; 64] {
    let header = Header {
        kind: FrameKind::Event,
        stream,
        sequence: 5,
        length,
        ..Header::control(FrameKind::Event, &[])
    };
    header.encode()
}

fn end(ids: &[u32]) -> Vec<u8> {
    let entry = |id: &u32| EndStream {
        id: *id,
        events: 1,
        bytes: 1,
        lost_events: 0,
        lost_bytes: 0,
        next_sequence: 6,
    };
    End { streams: ids.iter().map(entry).collect() }.to_frame().unwrap()
}

fn hello(ids: &[u32]) -> Vec<u8> {
    Hello::new("test", streams(ids)).to_frame().unwrap()
}

/// Passes a whole control frame.
fn give(session: &mut Session, frame: &[u8]) -> Result<Control, WireError> {
    let (head, payload) = frame.split_first_chunk().unwrap();
    let next = session.header(head)?;
    assert_eq!(next, Next::Control { length: payload.len() });
    session.control(payload)
}

fn opened(ids: &[u32]) -> Session {
    let mut session = Session::new(LIMITS);
    assert!(session.expects_hello());
    let frame = hello(ids);
    session.header(frame.first_chunk().unwrap()).unwrap();
    assert!(session.expects_hello(), "half a hello is none");
    let mut session = Session::new(LIMITS);
    assert!(matches!(give(&mut session, &hello(ids)), Ok(Control::Hello(_))));
    assert!(!session.expects_hello());
    session
}

fn why(result: Result<impl std::fmt::Debug, WireError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_complete_session() {
    let mut session = opened(&[9, 65_535, 0]);
    assert_eq!(session.streams().len(), 3);
    for (index, stream) in [(0, 9), (1, 65_535), (2, 0)] {
        let Ok(Next::Event(head)) = session.header(&event(stream, 1000)) else { panic!() };
        assert_eq!((head.index, head.stream, head.sequence, head.length), (index, stream, 5, 1000));
    }
    assert!(matches!(session.header(&event(9, 0)), Ok(Next::Event(_))), "an empty event is legal");
    assert!(!session.is_ended());
    assert!(matches!(give(&mut session, &end(&[0, 9, 65_535])), Ok(Control::End(_))));
    assert!(session.is_ended());
    assert!(why(session.header(&event(9, 1))).contains("nothing may follow end"));
}

#[test]
fn frames_must_come_in_order() {
    assert!(why(Session::new(LIMITS).header(&event(1, 1))).contains("the first frame must be hello"));
    assert!(why(give(&mut Session::new(LIMITS), &end(&[1]))).contains("the first frame must be hello"));
    assert!(why(give(&mut opened(&[1]), &hello(&[1]))).contains("hello was already received"));
    for kind in [FrameKind::Welcome, FrameKind::Ack, FrameKind::Bye, FrameKind::Error] {
        let header = Header::control(kind, &[]).encode();
        assert!(why(opened(&[1]).header(&header)).contains("only a recorder sends this kind"));
    }
    let mut session = Session::new(LIMITS);
    let frame = hello(&[1]);
    session.header(frame.first_chunk().unwrap()).unwrap();
    assert!(
        why(session.header(frame.first_chunk().unwrap())).contains("a control payload was expected first")
    );
    assert!(why(Session::new(LIMITS).control(b"{}")).contains("no control payload was announced"));
}

#[test]
fn limits_are_enforced() {
    assert!(why(opened(&[1]).header(&event(1, 1001))).contains("1001 bytes, the limit is 1000"));
    assert!(why(opened(&[1]).header(&event(2, 1))).contains("stream 2 was not declared"));
    assert!(why(opened(&[5]).header(&event(4, 1))).contains("stream 4 was not declared"));
    let long = |length| Header { length, ..Header::control(FrameKind::End, &[]) }.encode();
    let wide = Limits { max_control_bytes: MAX_CONTROL_BYTES, ..LIMITS };
    let mut few = Session::new(wide);
    give(&mut few, &hello(&[1, 2])).unwrap();
    let most = (64 << 10) + 2 * 1024;
    assert!(why(few.header(&long(most + 1))).contains(&format!("the limit is {most}")), "end of two streams");
    let long = Header { length: 4097, ..Header::control(FrameKind::Hello, &[]) }.encode();
    assert!(why(Session::new(LIMITS).header(&long)).contains("4097 bytes, the limit is 4096"));
    let boundless = Limits { max_control_bytes: u64::MAX, ..LIMITS };
    let absurd = Header { length: u64::MAX, ..Header::control(FrameKind::Hello, &[]) }.encode();
    assert!(why(Session::new(boundless).header(&absurd)).contains("the limit is 8388608"));
    assert!(why(give(&mut Session::new(LIMITS), &hello(&[1, 2, 3, 4]))).contains("4 streams declared"));
}

#[test]
fn a_sequence_that_could_overflow_is_refused() {
    let at = |sequence| {
        let header = Header {
            kind: FrameKind::Event,
            stream: 1,
            sequence,
            length: 1,
            ..Header::control(FrameKind::Event, &[])
        };
        opened(&[1]).header(&header.encode())
    };
    assert!(at((1 << 63) - 1).is_ok());
    assert!(why(at(1 << 63)).contains("is not below 2^63"));
    assert!(why(at(u64::MAX)).contains("is not below 2^63"));
}

#[test]
fn an_event_has_the_length_of_its_shape_unless_it_is_compressed() {
    let with = |compression| {
        let info =
            StreamInfo { element: ElementType::U16, shape: vec![4], compression, ..streams(&[1])[0].clone() };
        let mut session = Session::new(LIMITS);
        give(&mut session, &Hello::new("test", vec![info]).to_frame().unwrap()).unwrap();
        session
    };
    assert!(with(None).header(&event(1, 8)).is_ok());
    assert!(why(with(None).header(&event(1, 3))).contains("it has 3 bytes, its shape says 8"));
    assert!(with(Some(crate::wire::Compression::Lz4)).header(&event(1, 3)).is_ok());
}

#[test]
fn a_control_frame_names_no_stream() {
    let header = Header { stream: 7, length: 10, ..Header::control(FrameKind::Hello, &[]) }.encode();
    assert!(why(Session::new(LIMITS).header(&header)).contains("stream of a control frame is 7"));
}

#[test]
fn end_accounts_for_every_stream() {
    assert!(why(give(&mut opened(&[1, 2]), &end(&[1]))).contains("1 streams listed, 2 were declared"));
    assert!(why(give(&mut opened(&[1, 2]), &end(&[1, 3]))).contains("stream 3 was not declared"));
}

#[test]
fn damaged_control_payloads_are_refused() {
    let mut frame = hello(&[1]);
    let (head, payload) = frame.split_first_chunk_mut::<64>().unwrap();
    payload[20] ^= 1;
    let mut session = Session::new(LIMITS);
    session.header(head).unwrap();
    assert!(why(session.control(payload)).contains("checksum"));
    let mut session = Session::new(LIMITS);
    session.header(head).unwrap();
    assert!(why(session.control(&payload[1..])).contains("the header has"));
}

#[test]
fn nothing_is_accepted_after_an_error() {
    let mut session = opened(&[1]);
    assert!(session.header(&event(2, 1)).is_err());
    assert!(why(session.header(&event(1, 1))).contains("this connection was refused"));
}

proptest! {
    #[test]
    fn headers_never_exceed_the_limits(
        kind in prop_oneof![Just(FrameKind::Hello), Just(FrameKind::Event), Just(FrameKind::End)],
        numbers in any::<(u32, u64, u64)>(),
        length in prop_oneof![any::<u64>(), 0u64..6000],
        open in any::<bool>(),
    ) {
        let mut session = if open { opened(&[1, 2]) } else { Session::new(LIMITS) };
        let (stream, sequence, a) = numbers;
        let header = Header { stream: stream % 4, sequence, length, a, ..Header::control(kind, &[]) };
        match session.header(&header.encode()) {
            Ok(Next::Control { length }) => prop_assert!(length as u64 <= LIMITS.max_control_bytes),
            Ok(Next::Event(head)) => prop_assert!(head.length <= LIMITS.max_event_bytes && head.index < 2),
            Err(_) => {}
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 64..400),
        sealed in any::<bool>(),
    ) {
        let mut session = opened(&[1]);
        for chunk in bytes.chunks_exact(64) {
            let mut head = [0u8; 64];
            head.copy_from_slice(chunk);
            if sealed {
                head[..8].copy_from_slice(b"KUP1\x03\x01\0\0");
                head[34..40].fill(0);
                head[56..60].fill(0);
                let crc = crc32(&head[..60]);
                head[60..].copy_from_slice(&crc.to_le_bytes());
            }
            if let Ok(Next::Control { length }) = session.header(&head) {
                prop_assert!(length as u64 <= LIMITS.max_control_bytes);
                let _ = session.control(&bytes[..length.min(bytes.len())]);
            }
        }
    }
}

#[test]
fn missing_may_come_between_hello_and_end() {
    let gap = |stream| Gap { stream, first_sequence: 5, events: 2, cause: LossCause::Source };
    let missing = |stream| Missing { gaps: vec![gap(stream)], rejected: Vec::new() }.to_frame().unwrap();
    let mut session = Session::new(LIMITS);
    assert!(give(&mut session, &missing(1)).is_err(), "before hello");
    let mut session = Session::new(LIMITS);
    give(&mut session, &hello(&[1, 2])).unwrap();
    assert_eq!(
        give(&mut session, &missing(2)),
        Ok(Control::Missing(Missing { gaps: vec![gap(2)], rejected: Vec::new() }))
    );
    assert!(session.header(&event(1, 3)).is_ok(), "events follow");
    assert_eq!((session.index_of(2), session.index_of(3)), (Some(1), None));
    assert!(give(&mut session, &missing(3)).unwrap_err().to_string().contains("was not declared"));
    let mut session = Session::new(LIMITS);
    give(&mut session, &hello(&[1])).unwrap();
    give(&mut session, &end(&[1])).unwrap();
    assert!(give(&mut session, &missing(1)).is_err(), "nothing follows end");
}
