//! Sending side of the wire protocol: one TCP connection to a recorder, used by sources and
//! drains.
//!
//! Invariants: the socket never blocks; every wait is a poll of at most 50 ms, so that the caller
//! can give up; the recorder's answers are read whenever the socket is full, so that the two
//! sides cannot deadlock.

use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Endpoint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use crate::wire::{Bye, ControlMessage, End, FrameKind, Hello, StreamIndex, StreamInfo, Welcome, WireError};
use inbox::{Frame, Inbox};

mod inbox;

/// Longest time between two checks of whether to give up.
const POLL_SLICE: Duration = Duration::from_millis(50);
/// Most slices of one system call (UIO_MAXIOV).
pub const SLICES_MAX: usize = 1024;

/// Error of a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Connection refused.
    #[error("cannot connect to {addr}: nothing listens there")]
    NotListening {
        /// Recorder's address.
        addr: SocketAddr,
    },
    /// A socket operation failed.
    #[error("cannot {action} {addr}: {source}")]
    Io {
        /// Operation, ending in "to" or "from".
        action: &'static str,
        /// The recorder's address.
        addr: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The recorder refused, in its own words.
    #[error("the recorder refused: {error}")]
    Refused {
        /// The recorder's error.
        error: String,
        /// The recorder's hint, possibly empty.
        hint: String,
    },
    /// The connection was closed early.
    #[error("cannot {action} {addr}: the recorder closed the connection")]
    Closed {
        /// Operation, ending in "to" or "from".
        action: &'static str,
        /// The recorder's address.
        addr: SocketAddr,
    },
    /// The recorder did not answer or accept data in time.
    #[error("cannot {action} {addr}: no progress within {} s", waited.as_secs_f64())]
    TimedOut {
        /// Operation, ending in "to" or "from".
        action: &'static str,
        /// The recorder's address.
        addr: SocketAddr,
        /// Timeout.
        waited: Duration,
    },
    /// A protocol violation, sent or received.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl Diagnostic for ClientError {
    /// Of a drain too: it loses nothing when the other side goes away, the recording still has everything.
    fn class(&self) -> ErrorClass {
        match self {
            Self::Wire(error) => error.class(),
            Self::NotListening { .. }
            | Self::Io { .. }
            | Self::Refused { .. }
            | Self::Closed { .. }
            | Self::TimedOut { .. } => ErrorClass::Environment,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::NotListening { addr } => {
                Some(format!("start the recorder first: `keepup record --listen {addr}`").into())
            }
            Self::Refused { hint, .. } => Some(hint.as_str()).filter(|hint| !hint.is_empty()).map(Cow::from),
            Self::Closed { .. } => {
                Some("its own output says why; events that it did not acknowledge may be lost".into())
            }
            Self::Wire(error) => error.hint(),
            Self::Io { .. } | Self::TimedOut { .. } => None,
        }
    }
}

/// Result of [`Client::send`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The kernel took everything.
    All,
    /// The caller gave up. The slices now hold the unsent rest, which must be sent before another
    /// frame: the connection may be in the middle of a frame.
    Stopped,
}

/// Opens a TCP connection to one address.
fn open(addr: SocketAddr, timeout: Duration) -> Result<(TcpStream, SocketAddr), ClientError> {
    let action = "connect to";
    match TcpStream::connect_timeout(&addr, timeout) {
        Ok(socket) => Ok((socket, addr)),
        Err(source) => Err(match source.kind() {
            io::ErrorKind::ConnectionRefused => ClientError::NotListening { addr },
            io::ErrorKind::TimedOut => ClientError::TimedOut { action, addr, waited: timeout },
            _ => ClientError::Io { action, addr, source },
        }),
    }
}

/// The recorder's progress on one stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acked {
    /// First sequence number that is not yet durable.
    pub durable_next: u64,
    /// Sequence number that the recorder expects next.
    pub received_next: u64,
    /// Events below `durable_next` that reached the recorder and are not stored, over all connections.
    pub lost_events: u64,
}

/// Connection to a recorder, after hello and welcome.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    addr: SocketAddr,
    inbox: Inbox,
    index: StreamIndex,
    acks: Vec<Acked>,
    /// Losses of each stream before this connection, from the welcome.
    lost_before: Vec<u64>,
    welcome: Option<Welcome>,
    bye: Option<Bye>,
    blocked_ns: u64,
    longest_blocked_ns: u64,
}

impl Client {
    /// Connects to the first address that accepts, sends hello and waits for the welcome;
    /// `timeout` applies to each step and each address.
    ///
    /// # Errors
    /// The hello is invalid, the connection is refused, the recorder refuses, or it does not
    /// answer in time.
    pub fn connect(
        to: impl Into<Endpoint>,
        hello: &Hello,
        timeout: Duration,
    ) -> Result<(Client, Welcome), ClientError> {
        let frame = hello.to_frame()?;
        let (socket, addr) = to.into().try_each(|addr| open(addr, timeout))?;
        let io = |source| ClientError::Io { action: "connect to", addr, source };
        socket.set_nodelay(true).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        let mut client = Client {
            socket,
            addr,
            inbox: Inbox::default(),
            index: StreamIndex::new(&hello.streams),
            acks: vec![Acked::default(); hello.streams.len()],
            lost_before: vec![0; hello.streams.len()],
            welcome: None,
            bye: None,
            blocked_ns: 0,
            longest_blocked_ns: 0,
        };
        client.send_frame(&frame, "sending hello to", timeout)?;
        let welcome = client.await_answer("wait for a welcome from", timeout, |c| c.welcome.take())?;
        client.enter_welcome(&welcome, &hello.streams)?;
        Ok((client, welcome))
    }

    /// Sends slices (headers and payloads of whole events) in order, and reads answers meanwhile.
    /// Calls `on_blocked` when the socket is full and then at least every 50 ms; `Break` gives
    /// up.
    ///
    /// # Errors
    /// The connection broke, or the recorder closed it with an error.
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
                    if !self.wait_writable(on_blocked)? {
                        return Ok(Sent::Stopped);
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.broken("send to", errno)),
            }
        }
        Ok(Sent::All)
    }

    /// Time spent waiting for space in the socket, ns.
    pub fn blocked_ns(&self) -> u64 {
        self.blocked_ns
    }

    /// Longest single wait for space in the socket, ns.
    pub fn longest_blocked_ns(&self) -> u64 {
        self.longest_blocked_ns
    }

    /// The recorder's progress, by the stream's position in hello; starts with the values of the
    /// welcome.
    pub fn acks(&self) -> &[Acked] {
        &self.acks
    }

    /// Events acknowledged as lost on this connection, by the stream's position in hello.
    pub fn lost_events(&self) -> impl Iterator<Item = u64> + '_ {
        self.acks.iter().zip(&self.lost_before).map(|(ack, before)| ack.lost_events.saturating_sub(*before))
    }

    /// Reads the answers that have arrived, without waiting.
    ///
    /// # Errors
    /// The recorder refused, closed the connection, or broke the protocol.
    pub fn poll_acks(&mut self) -> Result<(), ClientError> {
        let mut buffer = [0u8; 4096];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(ClientError::Closed { action: "read from", addr: self.addr }),
                Ok((count, _)) => {
                    self.inbox.push(&buffer[..count]);
                    while let Some(frame) = self.inbox.next_frame()? {
                        self.take_frame(frame)?;
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.io("read from", errno)),
            }
        }
    }

    /// Sends end and waits for the bye, which the recorder sends once everything is durable.
    ///
    /// # Errors
    /// As for [`Client::send`], or no bye within `timeout`.
    pub fn finish(mut self, end: &End, timeout: Duration) -> Result<Bye, ClientError> {
        let frame = end.to_frame()?;
        self.send_frame(&frame, "sending end to", timeout)?;
        self.await_answer("wait for a bye from", timeout, |c| c.bye.take())
    }

    /// Timeout error of a caller that gave up after `waited`.
    pub(crate) fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        ClientError::TimedOut { action, addr: self.addr, waited }
    }

    fn send_frame(
        &mut self,
        frame: &[u8],
        action: &'static str,
        timeout: Duration,
    ) -> Result<(), ClientError> {
        let deadline = Instant::now() + timeout;
        let mut on_blocked =
            || if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        match self.send(&mut &mut [IoSlice::new(frame)][..], &mut on_blocked)? {
            Sent::All => Ok(()),
            Sent::Stopped => Err(self.timed_out(action, timeout)),
        }
    }

    fn await_answer<T>(
        &mut self,
        action: &'static str,
        timeout: Duration,
        answer: impl Fn(&mut Client) -> Option<T>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + timeout;
        loop {
            // The recorder closes after its final frame, so the frame is handled before the
            // close.
            match (self.poll_acks(), answer(self)) {
                (Err(refused @ ClientError::Refused { .. }), _) => return Err(refused),
                (_, Some(answer)) => return Ok(answer),
                (polled, None) => polled?,
            }
            if Instant::now() >= deadline {
                return Err(self.timed_out(action, timeout));
            }
            self.poll(PollFlags::IN)?;
        }
    }

    /// Waits until the socket accepts data; `false` when the caller gave up.
    fn wait_writable(
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
            Err(errno) => Err(self.io("wait for", errno)),
        }
    }

    fn take_frame(&mut self, frame: Frame) -> Result<(), ClientError> {
        match frame {
            Frame::Ack(ack) => {
                let at = self.index.get(ack.stream).ok_or(WireError::Unexpected {
                    kind: FrameKind::Ack,
                    why: "it names a stream that hello did not declare",
                })?;
                let acked = &mut self.acks[at];
                acked.durable_next = acked.durable_next.max(ack.durable_next);
                acked.received_next = acked.received_next.max(ack.received_next);
                acked.lost_events = acked.lost_events.max(ack.lost_events);
            }
            Frame::Welcome(welcome) => self.welcome = Some(welcome),
            Frame::Bye(bye) => self.bye = Some(bye),
            Frame::Error(reply) => {
                return Err(ClientError::Refused { error: reply.error, hint: reply.hint });
            }
        }
        Ok(())
    }

    /// Checks that the welcome has the next sequence number of every declared stream.
    fn enter_welcome(&mut self, welcome: &Welcome, streams: &[StreamInfo]) -> Result<(), ClientError> {
        let known = welcome.streams.iter().filter(|s| self.index.get(s.id).is_some()).count();
        if known != streams.len() || welcome.streams.len() != streams.len() {
            let what = format!("{} streams declared, {known} of them answered", streams.len());
            return Err(WireError::Invalid { kind: FrameKind::Welcome, what: what.into() }.into());
        }
        for stream in &welcome.streams {
            if let Some(at) = self.index.get(stream.id) {
                self.acks[at] = Acked {
                    durable_next: stream.durable_next,
                    received_next: stream.next_sequence,
                    lost_events: stream.lost_events,
                };
                self.lost_before[at] = stream.lost_events;
            }
        }
        Ok(())
    }

    /// Error of a connection that broke while sending. The recorder's final error, if it arrived,
    /// is more specific than `errno`.
    fn broken(&mut self, action: &'static str, errno: Errno) -> ClientError {
        match self.poll_acks() {
            Err(refused @ ClientError::Refused { .. }) => refused,
            _ => self.io(action, errno),
        }
    }

    fn io(&self, action: &'static str, errno: Errno) -> ClientError {
        match errno {
            Errno::PIPE | Errno::CONNRESET => ClientError::Closed { action, addr: self.addr },
            _ => ClientError::Io { action, addr: self.addr, source: errno.into() },
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
