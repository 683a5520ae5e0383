//! Documents over a socket pair: what is sent, and what the recorder answers.
use super::*;
use keepup_stream::wire::Bye;

fn sender() -> (DocumentSender, UnixStream) {
    let (mut senders, mut sockets) = pairs(&["first".to_owned(), "second".to_owned()]).unwrap();
    assert_eq!((senders[0].id, senders[1].id), (65_535, 65_534));
    let recorder = UnixStream::from(sockets.swap_remove(1));
    recorder.set_nonblocking(false).unwrap();
    (senders.swap_remove(1), recorder)
}

#[test]
fn a_document_is_one_event_of_bytes() {
    let (sender, mut recorder) = sender();
    let sending = std::thread::spawn(move || sender.send(7, b"{}"));
    let mut frame = |expected| {
        let mut header = [0; HEADER_BYTES];
        recorder.read_exact(&mut header).unwrap();
        let header = Header::decode(&header).unwrap();
        assert_eq!(header.kind, expected);
        let mut payload = vec![0; header.length as usize];
        recorder.read_exact(&mut payload).unwrap();
        (header, payload)
    };
    let hello = Hello::from_payload(&frame(FrameKind::Hello).1).unwrap();
    let (name, shape) = ("second".to_owned(), vec![2]);
    let info = StreamInfo { id: 65_534, name, element: ElementType::U8, shape, compression: None };
    assert_eq!(hello.streams, [info]);
    let (event, payload) = frame(FrameKind::Event);
    assert_eq!((event.stream, event.timestamp_ns, &payload[..]), (65_534, 7, &b"{}"[..]));
    let end = End::from_payload(&frame(FrameKind::End).1).unwrap();
    assert_eq!((end.streams[0].events, end.streams[0].bytes), (1, 2));
    recorder.write_all(&Bye { streams: Vec::new() }.to_frame().unwrap()).unwrap();
    sending.join().unwrap().unwrap();
}

#[test]
fn a_refusal_says_why() {
    let (sender, mut recorder) = sender();
    let reply = ErrorReply { error: "too large".into(), hint: String::new() };
    recorder.write_all(&reply.to_frame().unwrap()).unwrap();
    drop(recorder);
    // The refusal is read although the recorder reads no more.
    assert_eq!(sender.send(7, &[0; 1 << 20]).unwrap_err().to_string(), "too large");
}

#[test]
fn a_recorder_that_has_ended_is_an_error() {
    let (sender, recorder) = sender();
    drop(recorder);
    assert!(sender.send(7, b"{}").is_err());
}
