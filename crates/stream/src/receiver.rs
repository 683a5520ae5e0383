//! Receiver for tests: one thread per connection, counts what arrives and discards it.

pub(crate) mod fleet;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use keepup_error::Cause;

use crate::ledger::{Count, Gap};
use crate::wire::{
    Ack, Bye, ByeStream, Control, ControlMessage, End, ErrorReply, EventHead, HEADER_BYTES, Hello, Limits,
    Next, Session, Welcome, WelcomeStream, crc32,
};

/// Behaviour of a receiver.
pub(crate) struct Behaviour {
    pub(crate) max_event_bytes: u64,
    /// Next sequence number of every stream in the welcome.
    pub(crate) next_sequence: u64,
    /// Answer hello with this error.
    pub(crate) refuse: Option<ErrorReply>,
    /// Send this error in the same packet as welcome, and close.
    pub(crate) refuse_after_welcome: Option<ErrorReply>,
    /// Close the connection after this many events.
    pub(crate) die_after_events: Option<u64>,
    /// Called after welcome, before anything else is read.
    pub(crate) before_reading: Box<dyn Fn() + Send>,
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        Behaviour {
            max_event_bytes: 512 << 20,
            next_sequence: 0,
            refuse: None,
            refuse_after_welcome: None,
            die_after_events: None,
            before_reading: Box::new(|| {}),
        }
    }
}

/// Counts of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) received: Count,
    pub(crate) missing_events: u64,
    /// Gaps that the client declared.
    pub(crate) declared: Vec<Gap>,
    pub(crate) bad_checksums: u64,
    pub(crate) next_sequence: u64,
    pub(crate) timestamps_ns: Vec<u64>,
    pub(crate) sizes: Vec<u64>,
    /// First 16 bytes of every page, which must all be distinct.
    pub(crate) stamps: Vec<Vec<u8>>,
}

/// Result of one connection.
#[derive(Debug, Default)]
pub(crate) struct ReceivedConnection {
    pub(crate) hello: Option<Hello>,
    pub(crate) end: Option<End>,
    pub(crate) streams: BTreeMap<u32, Arrived>,
}

/// Starts a receiver for `connections` connections, each with a thread; the results are in the
/// order of accepting.
pub(crate) fn receive(
    connections: usize,
    behaviour: impl Fn() -> Behaviour + Send + 'static,
) -> (SocketAddr, JoinHandle<Vec<ReceivedConnection>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let handle = thread::spawn(move || {
        let threads: Vec<_> = (0..connections)
            .map(|_| {
                let (socket, _) = listener.accept().unwrap();
                let behaviour = behaviour();
                thread::spawn(move || serve(socket, &behaviour))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    (addr, handle)
}

fn serve(mut socket: TcpStream, behaviour: &Behaviour) -> ReceivedConnection {
    let mut talk = ReceivedConnection::default();
    // Some tests close the client early: the result is what arrived until then.
    let _ = serve_to_end(&mut socket, behaviour, &mut talk);
    talk
}

fn serve_to_end(
    socket: &mut TcpStream,
    behaviour: &Behaviour,
    talk: &mut ReceivedConnection,
) -> io::Result<()> {
    let limits = Limits {
        max_event_bytes: behaviour.max_event_bytes,
        max_control_bytes: 8 << 20,
        max_streams: 65_535,
    };
    let mut session = Session::new(limits);
    let mut payload = Vec::new();
    let mut events = 0u64;
    while !session.is_ended() {
        let mut head = [0u8; HEADER_BYTES];
        socket.read_exact(&mut head)?;
        match session.header(&head) {
            Err(error) => {
                let reply = ErrorReply::of(&Cause::of(&error));
                return socket.write_all(&reply.to_frame().unwrap());
            }
            Ok(Next::Control { length }) => {
                payload.resize(length, 0);
                socket.read_exact(&mut payload)?;
                match session.control(&payload) {
                    Err(error) => {
                        let reply = ErrorReply::of(&Cause::of(&error));
                        return socket.write_all(&reply.to_frame().unwrap());
                    }
                    Ok(Control::Hello(hello)) => {
                        if !answer_hello(socket, behaviour, &hello)? {
                            return Ok(());
                        }
                        talk.streams = hello.streams.iter().map(|s| (s.id, starting(behaviour))).collect();
                        talk.hello = Some(hello);
                        (behaviour.before_reading)();
                    }
                    Ok(Control::Missing(missing)) => enter_gaps(&mut talk.streams, &missing.gaps),
                    Ok(Control::End(end)) => talk.end = Some(end),
                    Ok(Control::Locate(_)) => {
                        let reply = ErrorReply::of(&"not part of a fleet".into());
                        return socket.write_all(&reply.to_frame().unwrap());
                    }
                }
            }
            Ok(Next::Event(head)) => {
                payload.resize(head.length as usize, 0);
                socket.read_exact(&mut payload)?;
                enter(talk.streams.get_mut(&head.stream).unwrap(), &head, &payload);
                events += 1;
                if events.is_multiple_of(100) {
                    let next = head.sequence + 1;
                    let ack = Ack {
                        stream: head.stream,
                        durable_next: next,
                        received_next: next,
                        credit_bytes: 0,
                        lost_events: 0,
                    };
                    socket.write_all(&ack.to_header().encode())?;
                }
                if behaviour.die_after_events.is_some_and(|limit| events >= limit) {
                    return Ok(());
                }
            }
        }
    }
    socket.write_all(&build_bye(talk).to_frame().unwrap())
}

fn starting(behaviour: &Behaviour) -> Arrived {
    Arrived { next_sequence: behaviour.next_sequence, ..Arrived::default() }
}

/// Answers hello; `false` if the client was refused.
fn answer_hello(socket: &mut TcpStream, behaviour: &Behaviour, hello: &Hello) -> io::Result<bool> {
    if let Some(refusal) = &behaviour.refuse {
        socket.write_all(&refusal.to_frame().unwrap())?;
        return Ok(false);
    }
    let next_sequence = behaviour.next_sequence;
    let welcome = Welcome {
        recording: "test".to_owned(),
        streams: hello
            .streams
            .iter()
            .map(|s| WelcomeStream { id: s.id, next_sequence, ..WelcomeStream::default() })
            .collect(),
        max_event_bytes: behaviour.max_event_bytes,
        credit_bytes: 0,
    };
    let mut frames = welcome.to_frame().unwrap();
    if let Some(refusal) = &behaviour.refuse_after_welcome {
        frames.extend(refusal.to_frame().unwrap());
    }
    socket.write_all(&frames)?;
    Ok(behaviour.refuse_after_welcome.is_none())
}

fn enter(stream: &mut Arrived, head: &EventHead, payload: &[u8]) {
    assert!(head.sequence >= stream.next_sequence, "sequence numbers rise");
    stream.missing_events += head.sequence - stream.next_sequence;
    stream.next_sequence = head.sequence + 1;
    stream.timestamps_ns.push(head.timestamp_ns);
    stream.sizes.push(head.length);
    stream.stamps.extend(payload.chunks(4096).filter(|p| p.len() >= 16).map(|p| p[..16].to_vec()));
    if crc32(payload) == head.crc {
        stream.received += Count::one(head.length);
    } else {
        stream.bad_checksums += 1;
    }
}

/// Enters numbers that no event will have.
fn enter_gaps(streams: &mut BTreeMap<u32, Arrived>, gaps: &[Gap]) {
    for gap in gaps {
        let stream = streams.get_mut(&gap.stream).unwrap();
        assert!(gap.first_sequence >= stream.next_sequence, "sequence numbers rise");
        let end = gap.first_sequence + gap.events;
        stream.missing_events += end - stream.next_sequence;
        stream.next_sequence = end;
        stream.declared.push(*gap);
    }
}

/// Counts the tail that end lists as lost, and builds the bye.
fn build_bye(talk: &mut ReceivedConnection) -> Bye {
    for ended in talk.end.iter().flat_map(|end| &end.streams) {
        let stream = talk.streams.get_mut(&ended.id).unwrap();
        stream.missing_events += ended.next_sequence - stream.next_sequence;
        stream.next_sequence = ended.next_sequence;
    }
    let streams = talk.streams.iter().map(|(id, s)| ByeStream {
        id: *id,
        received_events: s.received.events,
        received_bytes: s.received.bytes,
        durable_events: s.received.events,
        durable_bytes: s.received.bytes,
        lost_events: s.missing_events,
    });
    Bye { streams: streams.collect() }
}
