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
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use keepup_error::{Diagnostic, ErrorClass};
use keepup_peer::Endpoint;
use keepup_results::shell::quoted;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::wire::{Bye, ControlMessage, End, Hello, Locate, Located, StreamInfo, Welcome, WireError};

mod answers;
mod inbox;
mod wait;

pub use answers::Acked;
use answers::Answers;
pub(crate) use wait::{SendError, Waits, poll_all, poll_slice, send_all};

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
    /// Connection to the last recorder of a fleet refused; no other one answered.
    #[error("cannot ask any of {recorders} recorders: nothing listens on {addr}")]
    NoFleet {
        /// Recorders that were asked.
        recorders: usize,
        /// Address of the last one.
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
    /// The wait for the other side was ended.
    #[error("cannot wait for the recorder: stopped")]
    Stopped,
    /// The protocol has the other side connect.
    #[error("cannot use {addr}: in this protocol, the other side connects")]
    Direction {
        /// The address.
        addr: SocketAddr,
    },
    /// A file could not be written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// Operation, ending in "to".
        action: &'static str,
        /// Directory of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The recorders of a fleet do not take a stream.
    #[error("cannot locate stream {stream}: no recorder of the fleet takes it")]
    Unassigned {
        /// Stream id.
        stream: u32,
    },
    /// No recorder of a fleet took a stream in time.
    #[error(
        "cannot send stream {stream}: no recorder or no acknowledgement for {} s: {last}",
        waited.as_secs_f64()
    )]
    NoRecorder {
        /// Stream id.
        stream: u32,
        /// Timeout.
        waited: Duration,
        /// Error of the last attempt.
        last: Box<ClientError>,
    },
    /// A protocol violation, sent or received.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl ClientError {
    /// Error of an operation on the socket to `addr`.
    pub(crate) fn of_socket(action: &'static str, addr: SocketAddr, errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET => Self::Closed { action, addr },
            _ => Self::Io { action, addr, source: errno.into() },
        }
    }
}

impl Diagnostic for ClientError {
    /// Of a drain too: it loses nothing when the other side goes away, the recording still has everything.
    fn class(&self) -> ErrorClass {
        match self {
            Self::Wire(error) => error.class(),
            Self::NoRecorder { last, .. } => last.class(),
            Self::NotListening { .. }
            | Self::NoFleet { .. }
            | Self::Io { .. }
            | Self::Refused { .. }
            | Self::Closed { .. }
            | Self::Stopped
            | Self::File { .. }
            | Self::Unassigned { .. }
            | Self::TimedOut { .. } => ErrorClass::Environment,
            Self::Direction { .. } => ErrorClass::Usage,
        }
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::NotListening { addr } => {
                Some(format!("start the recorder first: `keepup record --listen {addr}`").into())
            }
            Self::NoFleet { .. } => Some(
                "start them first: `keepup record --fleet FILE`; they listen on `data` of each host".into(),
            ),
            Self::Refused { hint, .. } => Some(hint.as_str()).filter(|hint| !hint.is_empty()).map(Cow::from),
            Self::Closed { .. } => {
                Some("its own output says why; events that it did not acknowledge may be lost".into())
            }
            Self::File { path, source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some(format!("mkdir -p {}", quoted(&path.display().to_string())).into())
            }
            Self::Wire(error) => error.hint(),
            Self::NoRecorder { last, .. } => last.hint(),
            Self::Io { .. }
            | Self::TimedOut { .. }
            | Self::Stopped
            | Self::File { .. }
            | Self::Unassigned { .. }
            | Self::Direction { .. } => None,
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

/// Connection to a recorder, after hello and welcome.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    addr: SocketAddr,
    answers: Answers,
    waits: Waits,
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
        let mut client = Self::open(to.into(), &hello.streams, timeout)?;
        client.send_frame(&frame, "sending hello to", timeout)?;
        let welcome =
            client.await_answer("wait for a welcome from", timeout, |answers| answers.welcome.take())?;
        client.answers.enter_welcome(&welcome, &hello.streams)?;
        Ok((client, welcome))
    }

    /// Asks the recorder of a fleet at the first address that accepts where its streams are recorded;
    /// `timeout` applies to each step and each address.
    ///
    /// # Errors
    /// As for [`Client::connect`]; a recorder that is not part of a fleet refuses.
    pub fn locate(
        to: impl Into<Endpoint>,
        locate: &Locate,
        timeout: Duration,
    ) -> Result<Located, ClientError> {
        let frame = locate.to_frame()?;
        let mut client = Self::open(to.into(), &[], timeout)?;
        client.send_frame(&frame, "sending a question to", timeout)?;
        client.await_answer("wait for an answer from", timeout, |answers| answers.located.take())
    }

    fn open(to: Endpoint, streams: &[StreamInfo], timeout: Duration) -> Result<Client, ClientError> {
        let (socket, addr) = to.try_each(|addr| open(addr, timeout))?;
        let io = |source| ClientError::Io { action: "connect to", addr, source };
        socket.set_nodelay(true).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        Ok(Client { socket, addr, answers: Answers::new(streams), waits: Waits::default() })
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
        let Client { socket, addr, answers, waits } = self;
        let socket: &TcpStream = socket;
        let mut on_input = || answers.read(socket, *addr);
        match send_all(socket, slices, waits, on_blocked, &mut on_input) {
            Ok(sent) => Ok(sent),
            Err(SendError::Client(error)) => Err(error),
            Err(SendError::Socket(errno)) => Err(self.broken("send to", errno)),
        }
    }

    /// Time spent waiting for space in the socket, ns.
    pub fn blocked_ns(&self) -> u64 {
        self.waits.total_ns
    }

    /// Longest single wait for space in the socket, ns.
    pub fn longest_blocked_ns(&self) -> u64 {
        self.waits.longest_ns
    }

    /// The recorder's progress, by the stream's position in hello; starts with the values of the
    /// welcome.
    pub fn acks(&self) -> &[Acked] {
        &self.answers.acks
    }

    /// Events acknowledged as lost on this connection, by the stream's position in hello.
    pub fn lost_events(&self) -> impl Iterator<Item = u64> + '_ {
        let Answers { acks, lost_before, .. } = &self.answers;
        acks.iter().zip(lost_before).map(|(ack, before)| ack.lost_events.saturating_sub(*before))
    }

    /// Reads the answers that have arrived, without waiting.
    ///
    /// # Errors
    /// The recorder refused, closed the connection, or broke the protocol.
    pub fn poll_acks(&mut self) -> Result<(), ClientError> {
        self.answers.read(&self.socket, self.addr)
    }

    /// Sends end and waits for the bye, which the recorder sends once everything is durable.
    ///
    /// # Errors
    /// As for [`Client::send`], or no bye within `timeout`.
    pub fn finish(mut self, end: &End, timeout: Duration) -> Result<Bye, ClientError> {
        let frame = end.to_frame()?;
        self.send_frame(&frame, "sending end to", timeout)?;
        self.await_answer("wait for a bye from", timeout, |answers| answers.bye.take())
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
        answer: impl Fn(&mut Answers) -> Option<T>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + timeout;
        loop {
            // The recorder closes after its final frame, so the frame is handled before the
            // close.
            match (self.poll_acks(), answer(&mut self.answers)) {
                (Err(refused @ ClientError::Refused { .. }), _) => return Err(refused),
                (_, Some(answer)) => return Ok(answer),
                (polled, None) => polled?,
            }
            if Instant::now() >= deadline {
                return Err(self.timed_out(action, timeout));
            }
            poll_slice(&self.socket, PollFlags::IN).map_err(|errno| self.io("wait for", errno))?;
        }
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
        ClientError::of_socket(action, self.addr, errno)
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
