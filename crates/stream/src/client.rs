//! The sending half of the wire protocol: one TCP connection to a recorder, used by sources and drains.
//!
//! Invariants: the socket never blocks; every wait is a poll of at most 50 ms so that the caller can
//! give up; answers of the recorder are read whenever the socket is full, so both sides can never wait for
//! each other.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use crate::wire::{Bye, ControlMessage, End, Hello, Kind, StreamIndex, StreamInfo, Welcome, WireError};
use inbox::{Frame, Inbox};

mod inbox;

/// Longest time between two looks at whether to give up.
const POLL_SLICE: Duration = Duration::from_millis(50);
/// Most slices that Linux takes in one call (UIO_MAXIOV).
pub const SLICES_MAX: usize = 1024;

/// Why a client could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error(
        "connecting to {addr}: nobody listens there\n\
         hint: start the recorder first: `keepup record --listen {addr}`"
    )]
    NotListening {
        /// Where to.
        addr: SocketAddr,
    },
    /// The system refused something on the socket.
    #[error("{doing} {addr}: {source}")]
    Io {
        /// What was tried, ending in "to" or "from".
        doing: &'static str,
        /// The recorder's address.
        addr: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// The recorder said no, in its own words.
    #[error("the recorder refused: {error}{}", hint_line(hint))]
    Refused {
        /// What it says is wrong.
        error: String,
        /// What it says would help, may be empty.
        hint: String,
    },
    /// The connection ended too early.
    #[error(
        "{doing} {addr}: the recorder closed the connection\n\
         hint: its own output says why; events that it did not acknowledge may be lost"
    )]
    Closed {
        /// What was tried, ending in "to" or "from".
        doing: &'static str,
        /// The recorder's address.
        addr: SocketAddr,
    },
    /// The recorder did not answer, or did not take data, in time.
    #[error("{doing} {addr}: no progress within {} s", waited.as_secs_f64())]
    TimedOut {
        /// What was tried, ending in "to" or "from".
        doing: &'static str,
        /// The recorder's address.
        addr: SocketAddr,
        /// How long it was waited for.
        waited: Duration,
    },
    /// What the recorder sent, or what was to be sent, does not follow the protocol.
    #[error(transparent)]
    Wire(#[from] WireError),
}

fn hint_line(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("\nhint: {hint}") }
}

/// What [`Client::send`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took everything.
    All,
    /// The caller gave up; the slices now hold what was not taken. Before another frame may be sent, these
    /// must be: the connection may stand in the middle of a frame.
    Stopped,
}

/// How far the recorder is with one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// First sequence number that is not yet durable.
    pub durable_next: u64,
    /// Sequence number that the recorder expects to receive next.
    pub received_next: u64,
}

/// One connection to a recorder, after hello and welcome.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    addr: SocketAddr,
    inbox: Inbox,
    index: StreamIndex,
    acks: Vec<Acked>,
    welcome: Option<Welcome>,
    bye: Option<Bye>,
    blocked_ns: u64,
    longest_blocked_ns: u64,
}

impl Client {
    /// Connects, says hello and waits for the welcome; `timeout` is for each of the two.
    ///
    /// # Errors
    /// The hello is invalid, nobody listens, the recorder refuses, or it does not answer in time.
    pub fn connect(
        addr: &SocketAddr,
        hello: &Hello,
        timeout: Duration,
    ) -> Result<(Client, Welcome), ClientError> {
        let frame = hello.to_frame()?;
        let addr = *addr;
        let io = |source| ClientError::Io { doing: "connecting to", addr, source };
        let socket = TcpStream::connect_timeout(&addr, timeout).map_err(|source| match source.kind() {
            io::ErrorKind::ConnectionRefused => ClientError::NotListening { addr },
            io::ErrorKind::TimedOut => {
                ClientError::TimedOut { doing: "connecting to", addr, waited: timeout }
            }
            _ => io(source),
        })?;
        socket.set_nodelay(true).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        let mut client = Client {
            socket,
            addr,
            inbox: Inbox::default(),
            index: StreamIndex::new(&hello.streams),
            acks: vec![Acked { durable_next: 0, received_next: 0 }; hello.streams.len()],
            welcome: None,
            bye: None,
            blocked_ns: 0,
            longest_blocked_ns: 0,
        };
        client.send_frame(&frame, "sending hello to", timeout)?;
        let welcome = client.await_answer("waiting for a welcome from", timeout, |c| c.welcome.take())?;
        client.enter_welcome(&welcome, &hello.streams)?;
        Ok((client, welcome))
    }

    /// Sends slices (headers and payloads of whole events), in order, and reads answers on the way. Calls
    /// `on_blocked` when the socket is full and then at least every 50 ms; `Break` makes it give up.
    ///
    /// # Errors
    /// The connection broke or the recorder said why it ends it.
    pub fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        IoSlice::advance_slices(slices, 0); // leading empty slices count as sent
        while !slices.is_empty() {
            let batch = &slices[..slices.len().min(SLICES_MAX)];
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match sendmsg(&self.socket, batch, &mut SendAncillaryBuffer::default(), flags) {
                Ok(sent) => IoSlice::advance_slices(slices, sent),
                Err(Errno::AGAIN) => {
                    if !self.wait_for_room(on_blocked)? {
                        return Ok(Sent::Stopped);
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.broken("sending to", errno)),
            }
        }
        Ok(Sent::All)
    }

    /// Time spent waiting for room in the socket, ns.
    pub fn blocked_ns(&self) -> u64 {
        self.blocked_ns
    }

    /// Longest single wait for room in the socket, ns.
    pub fn longest_blocked_ns(&self) -> u64 {
        self.longest_blocked_ns
    }

    /// How far the recorder is, by the stream's position in hello; begins with what welcome said.
    pub fn acks(&self) -> &[Acked] {
        &self.acks
    }

    /// Reads what the recorder has sent so far, without waiting.
    ///
    /// # Errors
    /// The recorder refused, closed the connection, or broke the protocol.
    pub fn poll_acks(&mut self) -> Result<(), ClientError> {
        let mut buffer = [0u8; 4096];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(ClientError::Closed { doing: "reading from", addr: self.addr }),
                Ok((count, _)) => {
                    self.inbox.push(&buffer[..count]);
                    while let Some(frame) = self.inbox.next_frame()? {
                        self.take_frame(frame)?;
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.io("reading from", errno)),
            }
        }
    }

    /// Says end and waits until the recorder has made everything durable and said bye.
    ///
    /// # Errors
    /// As for [`Client::send`]; or no bye within `timeout`.
    pub fn finish(mut self, end: &End, timeout: Duration) -> Result<Bye, ClientError> {
        let frame = end.to_frame()?;
        self.send_frame(&frame, "sending end to", timeout)?;
        self.await_answer("waiting for a bye from", timeout, |c| c.bye.take())
    }

    /// The error of a caller that gave up after `waited`.
    pub(crate) fn timed_out(&self, doing: &'static str, waited: Duration) -> ClientError {
        ClientError::TimedOut { doing, addr: self.addr, waited }
    }

    fn send_frame(
        &mut self,
        frame: &[u8],
        doing: &'static str,
        timeout: Duration,
    ) -> Result<(), ClientError> {
        let deadline = Instant::now() + timeout;
        let mut on_blocked =
            || if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        match self.send(&mut &mut [IoSlice::new(frame)][..], &mut on_blocked)? {
            Sent::All => Ok(()),
            Sent::Stopped => Err(self.timed_out(doing, timeout)),
        }
    }

    fn await_answer<T>(
        &mut self,
        doing: &'static str,
        timeout: Duration,
        answer: impl Fn(&mut Client) -> Option<T>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + timeout;
        loop {
            let polled = self.poll_acks();
            // The recorder closes after its last word, so the word counts before the closing does.
            if let Some(answer) = answer(self) {
                return Ok(answer);
            }
            polled?;
            if Instant::now() >= deadline {
                return Err(self.timed_out(doing, timeout));
            }
            self.poll(PollFlags::IN)?;
        }
    }

    /// Waits until the socket takes data; `false` when the caller gave up.
    fn wait_for_room(
        &mut self,
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<bool, ClientError> {
        let begin = Instant::now();
        let has_room = loop {
            if on_blocked().is_break() {
                break false;
            }
            let ready = self.poll(PollFlags::IN | PollFlags::OUT)?;
            if ready.intersects(PollFlags::IN) {
                self.poll_acks()?;
            }
            if ready.intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP) {
                break true; // an error shows in the next send
            }
        };
        let waited_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.blocked_ns = self.blocked_ns.saturating_add(waited_ns);
        self.longest_blocked_ns = self.longest_blocked_ns.max(waited_ns);
        Ok(has_room)
    }

    fn poll(&self, wanted: PollFlags) -> Result<PollFlags, ClientError> {
        let mut fds = [PollFd::new(&self.socket, wanted)];
        let slice = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_SLICE.subsec_nanos()) };
        match poll(&mut fds, Some(&slice)) {
            Ok(_) | Err(Errno::INTR) => Ok(fds[0].revents()),
            Err(errno) => Err(self.io("waiting for", errno)),
        }
    }

    fn take_frame(&mut self, frame: Frame) -> Result<(), ClientError> {
        match frame {
            Frame::Ack(ack) => {
                let at = self.index.get(ack.stream).ok_or(WireError::Unexpected {
                    kind: Kind::Ack,
                    why: "it names a stream that hello did not declare",
                })?;
                let acked = &mut self.acks[at];
                acked.durable_next = acked.durable_next.max(ack.durable_next);
                acked.received_next = acked.received_next.max(ack.received_next);
            }
            Frame::Welcome(welcome) => self.welcome = Some(welcome),
            Frame::Bye(bye) => self.bye = Some(bye),
            Frame::Error(reply) => {
                return Err(ClientError::Refused { error: reply.error, hint: reply.hint });
            }
        }
        Ok(())
    }

    /// Welcome must say for every declared stream where it goes on.
    fn enter_welcome(&mut self, welcome: &Welcome, streams: &[StreamInfo]) -> Result<(), ClientError> {
        let known = welcome.streams.iter().filter(|s| self.index.get(s.id).is_some()).count();
        if known != streams.len() || welcome.streams.len() != streams.len() {
            let what = format!("{} streams declared, {known} of them answered", streams.len());
            return Err(WireError::Invalid { kind: Kind::Welcome, what }.into());
        }
        for stream in &welcome.streams {
            if let Some(at) = self.index.get(stream.id) {
                let next = stream.next_sequence;
                self.acks[at] = Acked { durable_next: next, received_next: next };
            }
        }
        Ok(())
    }

    /// The connection broke while sending. The recorder's last words, if any arrived, say more than `errno`.
    fn broken(&mut self, doing: &'static str, errno: Errno) -> ClientError {
        match self.poll_acks() {
            Err(refused @ ClientError::Refused { .. }) => refused,
            _ => self.io(doing, errno),
        }
    }

    fn io(&self, doing: &'static str, errno: Errno) -> ClientError {
        match errno {
            Errno::PIPE | Errno::CONNRESET => ClientError::Closed { doing, addr: self.addr },
            _ => ClientError::Io { doing, addr: self.addr, source: errno.into() },
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
