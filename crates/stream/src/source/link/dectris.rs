//! The streams of DECTRIS detectors over ZeroMQ. The receiver connects to the detector; each event is an
//! image.
mod v1;
mod v2;

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::net::{RecvFlags, recv};

use keepup_measure::sum::Sums;

use super::super::StreamReport;
use super::super::event::Event;
use super::super::plan::{DectrisVersion, SourcePlan};
use super::{Door, Framing, Link};
use crate::client::{ClientError, SendError, Sent, Waits, poll_all, poll_slice, send_all};
use crate::time::monotonic_ns;
use crate::wire::{Bye, ElementType};
use crate::zmtp;

/// Timeout for a receiver to take the start of a series.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// Most connections that are served until one of them has proved to be a receiver; beyond them the oldest is
/// closed.
const GUESTS_MAX: usize = 16;
/// Action in errors of sending.
const SEND: &str = "send to";

/// Waits for a receiver that answers. Others, which may never send anything, are served meanwhile.
fn accept(door: &Door, stop: &AtomicBool) -> Result<(TcpStream, SocketAddr), ClientError> {
    let (mut wait, mut guests) = (door.wait(stop), Vec::new());
    loop {
        while let Some((socket, addr)) = door.accept()? {
            match Guest::new(socket, addr) {
                Ok(guest) => {
                    if guests.len() == GUESTS_MAX {
                        guests.remove(0);
                    }
                    guests.push(guest);
                }
                Err(why) => wait.rejected(addr, why),
            }
        }
        for index in (0..guests.len()).rev() {
            match guests[index].shake_hands() {
                Ok(true) => return guests.remove(index).admit().map_err(|source| door.failed(source)),
                Ok(false) => {}
                Err(why) => wait.rejected(guests.remove(index).addr, why),
            }
        }
        wait.check()?;
        let sockets = guests.iter().map(|guest: &Guest| PollFd::new(&guest.socket, PollFlags::IN));
        let mut fds: Vec<_> = sockets.chain([PollFd::new(door.listener(), PollFlags::IN)]).collect();
        poll_all(&mut fds).map_err(|errno| door.failed(errno.into()))?;
    }
}

/// A peer that has connected and may be a receiver.
struct Guest {
    socket: TcpStream,
    addr: SocketAddr,
    /// Its greeting and its first command, as far as they have arrived.
    received: Vec<u8>,
}

impl Guest {
    /// Greets a peer.
    fn new(mut socket: TcpStream, addr: SocketAddr) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.write_all(&zmtp::greeting())?;
        Ok(Self { socket, addr, received: Vec::new() })
    }

    /// Reads what has arrived; returns whether the peer has shown that it is a receiver.
    ///
    /// # Errors
    /// It is none, or has gone.
    fn shake_hands(&mut self) -> io::Result<bool> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let command_at = zmtp::GREETING_BYTES + 2;
        loop {
            let wanted = match self.received.len() {
                0..zmtp::GREETING_BYTES => zmtp::GREETING_BYTES,
                length if length < command_at => command_at,
                _ => command_at + usize::from(self.received[command_at - 1]),
            };
            let mut part = vec![0; wanted - self.received.len()];
            match self.socket.read(&mut part) {
                Ok(0) if !part.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.received.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            let (bytes, length) = (&self.received, self.received.len());
            if length == zmtp::GREETING_BYTES {
                if (bytes[0], bytes[9]) != (0xFF, 0x7F) || bytes[10] < 3 {
                    return Err(invalid("the receiver does not speak ZeroMQ (ZMTP 3)"));
                }
                self.socket.write_all(&zmtp::ready("PUSH"))?;
            }
            if length >= command_at && length == command_at + usize::from(bytes[command_at - 1]) {
                let (flags, ready) = (bytes[zmtp::GREETING_BYTES], &bytes[command_at..]);
                let is_pull = flags == zmtp::FLAG_COMMAND && ready.windows(4).any(|word| word == b"PULL");
                return if is_pull { Ok(true) } else { Err(invalid("the receiver is not a PULL socket")) };
            }
        }
    }

    /// The connection of a receiver, with a time limit for the start of the series.
    fn admit(self) -> io::Result<(TcpStream, SocketAddr)> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_write_timeout(Some(START_TIMEOUT))?;
        Ok((self.socket, self.addr))
    }
}

/// What all images of a series have in common.
#[derive(Debug)]
pub(super) struct Series {
    /// Number of images that the start message announces; 0 if unknown.
    images: u64,
    width: u64,
    height: u64,
    element: ElementType,
    is_compressed: bool,
    unique_id: String,
}

impl Series {
    /// Images as they are declared to a recorder, or else one line of bytes: the protocol has unsigned
    /// integers of 8 to 32 bits in two dimensions.
    fn new(plan: &SourcePlan) -> Self {
        let bytes = plan.size.max_bytes();
        match (plan.element, plan.shape.split_last()) {
            (ElementType::U8 | ElementType::U16 | ElementType::U32, Some((&width, lines))) => {
                let (height, element) = (lines.iter().saturating_product(), plan.element);
                let is_compressed = plan.uncompressed_bytes().is_some();
                Self { width, height, element, is_compressed, ..Self::of_bytes(plan, bytes) }
            }
            _ => Self::of_bytes(plan, bytes),
        }
    }

    fn of_bytes(plan: &SourcePlan, bytes: u64) -> Self {
        let (width, height, element, is_compressed) = (bytes, 1, ElementType::U8, false);
        let unique_id = format!("keepup-{}-{}", std::process::id(), plan.seed);
        Self { images: plan.events.unwrap_or(0), width, height, element, is_compressed, unique_id }
    }
}

/// Messages of one version of the stream.
trait Messages: Send {
    /// Frames of the message at the start of the series.
    fn start(&self, series: &Series) -> Vec<Vec<u8>>;

    /// Appends everything of an image in front of its pixels, with frame headers.
    fn put_header(&self, series: &Series, event: &Event, timestamp_ns: u64, out: &mut Vec<u8>);

    /// Appends everything of an image behind its pixels, with frame headers.
    fn put_trailer(&self, event: &Event, out: &mut Vec<u8>);

    /// The message at the end of the series, one frame.
    fn end(&self, series: &Series) -> Vec<u8>;
}

/// A connection to a receiver.
pub(super) struct Dectris {
    socket: TcpStream,
    addr: SocketAddr,
    series: Series,
    messages: Box<dyn Messages>,
    waits: Waits,
}

impl Dectris {
    /// Waits for a receiver, and sends it the start of the series.
    pub(super) fn open(
        plan: &SourcePlan,
        version: DectrisVersion,
        door: &Door,
        stop: &AtomicBool,
    ) -> Result<Self, ClientError> {
        let (mut socket, addr) = accept(door, stop)?;
        let messages: Box<dyn Messages> = match version {
            DectrisVersion::V1 => Box::new(v1::V1),
            DectrisVersion::V2 => Box::new(v2::V2),
        };
        let series = Series::new(plan);
        socket
            .write_all(&message(&messages.start(&series)))
            .and_then(|()| socket.set_nodelay(true))
            .and_then(|()| socket.set_nonblocking(true))
            .map_err(|source| ClientError::Io { action: "start a series for", addr, source })?;
        Ok(Self { socket, addr, series, messages, waits: Waits::default() })
    }
}

/// A message of whole frames.
fn message(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        out.extend_from_slice(&zmtp::frame_header(frame.len() as u64, index + 1 == frames.len()));
        out.extend_from_slice(frame);
    }
    out
}

/// Discards what a receiver sends; returns whether it has closed the connection.
fn discard(socket: &TcpStream, addr: SocketAddr) -> Result<bool, ClientError> {
    let mut buffer = [0; 4096];
    loop {
        match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Ok(true),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(errno) => return Err(ClientError::of_socket(SEND, addr, errno)),
        }
    }
}

/// Discards what a receiver sends that must not close the connection yet.
fn expect_open(socket: &TcpStream, addr: SocketAddr) -> Result<(), ClientError> {
    match discard(socket, addr)? {
        true => Err(ClientError::Closed { action: SEND, addr }),
        false => Ok(()),
    }
}

impl Framing for Dectris {
    fn has_checksum(&self) -> bool {
        false
    }

    fn put_header(&self, event: &Event, timestamp_ns: u64, _crc: u32, out: &mut Vec<u8>) {
        self.messages.put_header(&self.series, event, timestamp_ns, out);
    }

    fn put_trailer(&self, event: &Event, _timestamp_ns: u64, out: &mut Vec<u8>) {
        self.messages.put_trailer(event, out);
    }
}

impl Link for Dectris {
    fn event_bytes_max(&self) -> u64 {
        u64::MAX
    }

    fn first_sequences(&self) -> Vec<u64> {
        vec![0]
    }

    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        let (socket, addr) = (&self.socket, self.addr);
        let sent = send_all(socket, slices, &mut self.waits, on_blocked, &mut || expect_open(socket, addr));
        sent.map_err(|error| match error {
            SendError::Client(error) => error,
            SendError::Socket(errno) => ClientError::of_socket(SEND, addr, errno),
        })
    }

    fn poll(&mut self) -> Result<(), ClientError> {
        expect_open(&self.socket, self.addr)
    }

    fn blocked_ns(&self) -> (u64, u64) {
        (self.waits.total_ns, self.waits.longest_ns)
    }

    fn durable_events(&self, _streams: &[StreamReport]) -> u64 {
        0
    }

    /// Sends the end of the series, and waits until the receiver has taken everything and closes.
    fn finish(mut self: Box<Self>, _streams: &[StreamReport], timeout: Duration) -> Result<Bye, ClientError> {
        let begin_ns = monotonic_ns();
        let is_late = || monotonic_ns() - begin_ns >= timeout.as_nanos() as u64;
        let end = message(&[self.messages.end(&self.series)]);
        let mut on_blocked = || if is_late() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let addr = self.addr;
        let failed = |errno| ClientError::of_socket(SEND, addr, errno);
        let late = || ClientError::TimedOut { action: "finish the series with", addr, waited: timeout };
        if self.send(&mut &mut [IoSlice::new(&end)][..], &mut on_blocked)? == Sent::Stopped {
            return Err(late());
        }
        // A socket that is closed with unread data would cut what is in flight.
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
        while !discard(&self.socket, addr)? {
            if is_late() {
                return Err(late());
            }
            poll_slice(&self.socket, PollFlags::IN).map_err(failed)?;
        }
        Ok(Bye { streams: Vec::new() })
    }

    fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        ClientError::TimedOut { action, addr: self.addr, waited }
    }
}

#[cfg(test)]
#[path = "dectris_tests.rs"]
mod tests;
