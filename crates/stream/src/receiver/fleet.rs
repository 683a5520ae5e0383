//! Recorders of a fleet for tests: they share a view, take the streams that it gives them, keep what they
//! took, and can be killed, frozen or cut off.
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::wire::{
    Ack, Bye, ByeStream, Control, ControlMessage, ErrorReply, EventHead, HEADER_BYTES, Hello, Limits,
    Located, LocatedStream, Next, Session, Welcome, WelcomeStream, crc32,
};

/// Which recorder takes each stream.
#[derive(Debug, Default)]
pub(crate) struct View {
    epoch: u64,
    owners: BTreeMap<u32, SocketAddr>,
}

/// A view that recorders share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedView(Arc<Mutex<View>>);

impl SharedView {
    /// Gives streams to a recorder.
    pub(crate) fn assign(&self, streams: impl IntoIterator<Item = u32>, address: SocketAddr) {
        let mut view = self.0.lock().unwrap();
        view.epoch += 1;
        view.owners.extend(streams.into_iter().map(|stream| (stream, address)));
    }
}

/// An event that a recorder took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) bytes: u64,
    pub(crate) crc: u32,
    pub(crate) timestamp_ns: u64,
}

/// A stream at a recorder.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakenStream {
    /// Where each connection began.
    pub(crate) firsts: Vec<u64>,
    pub(crate) next: u64,
    pub(crate) durable_next: u64,
    pub(crate) events: BTreeMap<u64, Taken>,
}

impl TakenStream {
    /// Events that survive the recorder.
    pub(crate) fn durable(&self) -> impl Iterator<Item = (u64, Taken)> + '_ {
        self.events.range(..self.durable_next).map(|(sequence, taken)| (*sequence, *taken))
    }
}

#[derive(Debug, Default)]
struct State {
    view: SharedView,
    streams: Mutex<BTreeMap<u32, TakenStream>>,
    sockets: Mutex<Vec<TcpStream>>,
    received: AtomicU64,
    is_dead: AtomicBool,
    is_frozen: AtomicBool,
    is_silent: AtomicBool,
    faults: Mutex<Vec<String>>,
    ended: AtomicU64,
}

/// A recorder.
#[derive(Debug)]
pub(crate) struct TestRecorder {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

impl TestRecorder {
    pub(crate) fn start(view: &SharedView) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { view: view.clone(), ..State::default() });
        let own = Arc::clone(&state);
        thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                if own.is_dead.load(SeqCst) {
                    return;
                }
                own.sockets.lock().unwrap().push(socket.try_clone().unwrap());
                let own = Arc::clone(&own);
                thread::spawn(move || drop(Connection::new(socket, address, own).serve()));
            }
        });
        Self { address, state }
    }

    /// Ends at once: what is not durable is lost.
    pub(crate) fn kill(&self) {
        self.state.is_dead.store(true, SeqCst);
        self.cut();
        // Wakes the listener, which then closes its socket.
        drop(TcpStream::connect(self.address));
        while TcpStream::connect(self.address).is_ok() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Closes all connections.
    pub(crate) fn cut(&self) {
        self.state.sockets.lock().unwrap().drain(..).for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    }

    /// Reads, accepts and answers nothing.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        self.state.is_frozen.store(is_frozen, SeqCst);
    }

    /// Makes nothing durable, and acknowledges nothing.
    pub(crate) fn silence(&self) {
        self.state.is_silent.store(true, SeqCst);
    }

    /// Events received, over all streams.
    pub(crate) fn received(&self) -> u64 {
        self.state.received.load(SeqCst)
    }

    /// Connections that have ended in order.
    pub(crate) fn ended(&self) -> u64 {
        self.state.ended.load(SeqCst)
    }

    /// Violations of the protocol by the source.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.state.faults.lock().unwrap().clone()
    }

    pub(crate) fn streams(&self) -> BTreeMap<u32, TakenStream> {
        self.state.streams.lock().unwrap().clone()
    }
}

impl Drop for TestRecorder {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Connection {
    socket: TcpStream,
    address: SocketAddr,
    state: Arc<State>,
    /// Streams of this connection: where it began, and what it received.
    streams: BTreeMap<u32, (u64, u64, u64)>,
}

impl Connection {
    fn new(socket: TcpStream, address: SocketAddr, state: Arc<State>) -> Self {
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        Self { socket, address, state, streams: BTreeMap::new() }
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u32, TakenStream>> {
        self.state.streams.lock().unwrap()
    }

    /// Reads, and acknowledges when nothing arrives.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            while self.state.is_frozen.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            match self.socket.read(&mut buffer[filled..]) {
                _ if self.state.is_dead.load(SeqCst) => return Err(io::ErrorKind::NotConnected.into()),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.acknowledge()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn serve(&mut self) -> io::Result<()> {
        let limits = Limits { max_event_bytes: 64 << 20, max_control_bytes: 8 << 20, max_streams: 1000 };
        let mut session = Session::new(limits);
        let mut payload = Vec::new();
        let mut since_ack = 0;
        loop {
            let mut head = [0; HEADER_BYTES];
            self.read(&mut head)?;
            match session.header(&head).unwrap() {
                Next::Control { length } => {
                    payload.resize(length, 0);
                    self.read(&mut payload)?;
                    match session.control(&payload).unwrap() {
                        Control::Locate(locate) => self.locate(&locate.streams)?,
                        Control::Hello(hello) => self.greet(&hello)?,
                        Control::Missing(missing) => {
                            let what = format!("{missing:?}, but a fleet's source declares nothing missing");
                            self.state.faults.lock().unwrap().push(what);
                        }
                        Control::End(end) => {
                            for stream in &end.streams {
                                let (first, events, bytes) = self.streams[&stream.id];
                                let lost_events = stream.next_sequence - first - events;
                                if (stream.events, stream.bytes, stream.lost_events)
                                    != (events, bytes, lost_events)
                                {
                                    let what = format!("{stream:?}, but {events} with {bytes} from {first}");
                                    self.state.faults.lock().unwrap().push(what);
                                }
                            }
                            self.acknowledge()?;
                            let streams = end.streams.iter().map(|stream| ByeStream {
                                id: stream.id,
                                received_events: stream.events,
                                received_bytes: stream.bytes,
                                durable_events: stream.events,
                                durable_bytes: stream.bytes,
                                lost_events: stream.lost_events,
                            });
                            let bye = Bye { streams: streams.collect() };
                            self.state.ended.fetch_add(1, SeqCst);
                            return self.socket.write_all(&bye.to_frame().unwrap());
                        }
                    }
                }
                Next::Event(head) => {
                    payload.resize(head.length as usize, 0);
                    self.read(&mut payload)?;
                    self.take(&head, &payload);
                    since_ack += 1;
                    if since_ack == 100 {
                        since_ack = 0;
                        self.acknowledge()?;
                    }
                }
            }
        }
    }

    fn locate(&mut self, streams: &[u32]) -> io::Result<()> {
        let located = {
            let view = self.state.view.0.lock().unwrap();
            let known = streams.iter().filter_map(|id| Some((*id, *view.owners.get(id)?)));
            let streams = known.map(|(id, address)| LocatedStream { id, address }).collect();
            Located { epoch: view.epoch, streams }
        };
        self.socket.write_all(&located.to_frame().unwrap())
    }

    fn greet(&mut self, hello: &Hello) -> io::Result<()> {
        let is_own = {
            let view = self.state.view.0.lock().unwrap();
            hello.streams.iter().all(|stream| view.owners.get(&stream.id) == Some(&self.address))
        };
        if !is_own {
            self.socket.write_all(&ErrorReply::of(&"not my stream".into()).to_frame().unwrap())?;
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut streams = Vec::new();
        for info in &hello.streams {
            let mut taken = self.taken();
            let stream = taken.entry(info.id).or_default();
            let continued = hello.continued.iter().find(|continued| continued.id == info.id);
            stream.next = stream.next.max(continued.map_or(0, |continued| continued.next_sequence));
            stream.firsts.push(stream.next);
            let (next_sequence, durable_next) = (stream.next, stream.durable_next);
            streams.push(WelcomeStream { id: info.id, next_sequence, durable_next, lost_events: 0 });
            drop(taken);
            self.streams.insert(info.id, (next_sequence, 0, 0));
        }
        let recording = "test".to_owned();
        let welcome = Welcome { recording, streams, max_event_bytes: 64 << 20, credit_bytes: 0 };
        self.socket.write_all(&welcome.to_frame().unwrap())
    }

    fn take(&mut self, head: &EventHead, payload: &[u8]) {
        let counts = self.streams.get_mut(&head.stream).unwrap();
        counts.1 += 1;
        counts.2 += head.length;
        let mut streams = self.state.streams.lock().unwrap();
        let stream = streams.get_mut(&head.stream).unwrap();
        if head.sequence < stream.next || crc32(payload) != head.crc {
            let what = format!("event {} of stream {} after {}", head.sequence, head.stream, stream.next);
            self.state.faults.lock().unwrap().push(what);
        }
        stream.next = head.sequence + 1;
        let taken = Taken { bytes: head.length, crc: head.crc, timestamp_ns: head.timestamp_ns };
        stream.events.insert(head.sequence, taken);
        self.state.received.fetch_add(1, SeqCst);
    }

    /// Makes everything durable, and acknowledges it.
    fn acknowledge(&mut self) -> io::Result<()> {
        if self.state.is_silent.load(SeqCst) {
            return Ok(());
        }
        let mut acks = Vec::new();
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            let mut taken = self.taken();
            let stream = taken.get_mut(&id).unwrap();
            stream.durable_next = stream.next;
            let (durable_next, received_next) = (stream.next, stream.next);
            let ack = Ack { stream: id, durable_next, received_next, credit_bytes: 0, lost_events: 0 };
            acks.extend(ack.to_header().encode());
        }
        self.socket.write_all(&acks)
    }
}
