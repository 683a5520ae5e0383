//! An areaDetector IOC that serves images of type NTNDArray over pvAccess (TCP). The receiver connects, and
//! monitors the PV; each event is an image.
//!
//! Invariant: a receiver with a pipelined monitor gets no more images than its queue holds and it has not
//! acknowledged. Meanwhile events wait in the front-end buffer, as images do in the queues of an IOC.
mod image;
mod session;

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::super::StreamReport;
use super::super::event::Event;
use super::super::plan::SourcePlan;
use super::{Door, Framing, Link};
use crate::client::{ClientError, SendError, Sent, Waits, poll_all, poll_slice, send_all};
use crate::pvaccess::Malformed;
use crate::time::monotonic_ns;
use crate::wire::Bye;

use image::Images;
pub use session::subscription;
use session::{Session, Status};

/// Action in errors of sending.
const SEND: &str = "send to";
/// Most connections that are served until a receiver has started its monitor.
const CLIENTS_MAX: usize = 16;

/// Time without acknowledgements after which no more are expected at the end, ns.
const ACKNOWLEDGE_NS: u64 = 2_000_000_000;

/// A client's connection.
struct Peer {
    socket: TcpStream,
    addr: SocketAddr,
    session: Session,
}

impl Peer {
    fn new(socket: TcpStream, addr: SocketAddr, images: &Images, port: u16) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, addr, session: Session::new(images.type_text().to_vec(), port) })
    }

    /// Sends answers as far as the socket takes them.
    fn answer(&mut self) -> io::Result<()> {
        while !self.session.output().is_empty() {
            match send(&self.socket, self.session.output(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => self.session.sent(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Whether it has started a monitor.
    fn serve(&mut self) -> io::Result<bool> {
        read(&self.socket, &mut self.session)?;
        self.answer()?;
        Ok(self.session.status() == Status::Running)
    }

    /// Reads what has arrived; the receiver must not go away yet.
    fn listen(&mut self) -> Result<(), ClientError> {
        listen(&self.socket, self.addr, &mut self.session)
    }

    fn failed(&self, source: io::Error) -> ClientError {
        failed(self.addr, source)
    }
}

/// Reads what has arrived.
fn read(socket: &TcpStream, session: &mut Session) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match recv(socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => session.received(&buffer[..count]).map_err(invalid)?,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn listen(socket: &TcpStream, addr: SocketAddr, session: &mut Session) -> Result<(), ClientError> {
    read(socket, session).map_err(|source| failed(addr, source))?;
    match session.status() {
        Status::Ended => Err(ClientError::Closed { action: SEND, addr }),
        Status::Waiting | Status::Running => Ok(()),
    }
}

fn failed(addr: SocketAddr, source: io::Error) -> ClientError {
    match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            ClientError::Closed { action: SEND, addr }
        }
        _ => ClientError::Io { action: SEND, addr, source },
    }
}

fn invalid(Malformed(why): Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Serves all clients that connect until one has started a monitor.
fn accept(door: &Door, images: &Images, stop: &AtomicBool) -> Result<Peer, ClientError> {
    let (mut wait, mut peers) = (door.wait(stop), Vec::new());
    loop {
        while let Some((socket, addr)) = door.accept()? {
            match Peer::new(socket, addr, images, door.address().port()) {
                Ok(peer) => {
                    // Clients that never start a monitor must not keep others out.
                    if peers.len() == CLIENTS_MAX {
                        peers.remove(0);
                    }
                    peers.push(peer);
                }
                Err(why) => wait.rejected(addr, why),
            }
        }
        for index in (0..peers.len()).rev() {
            match peers[index].serve() {
                Ok(true) => return Ok(peers.remove(index)),
                Ok(false) => {}
                Err(why) => wait.rejected(peers.remove(index).addr, why),
            }
        }
        wait.check()?;
        let sockets = peers.iter().map(|peer: &Peer| PollFd::new(&peer.socket, PollFlags::IN));
        let mut fds: Vec<_> = sockets.chain([PollFd::new(door.listener(), PollFlags::IN)]).collect();
        poll_all(&mut fds).map_err(|errno| door.failed(errno.into()))?;
    }
}

/// A connection to a receiver.
pub(super) struct PvAccess {
    door: Door,
    peer: Peer,
    images: Images,
    waits: Waits,
}

impl PvAccess {
    /// Waits until a receiver monitors the PV.
    pub(super) fn open(plan: &SourcePlan, door: &Door, stop: &AtomicBool) -> Result<Self, ClientError> {
        let mut images = Images::new(plan);
        let mut peer = accept(door, &images, stop)?;
        images.start(peer.session.monitor());
        let first = images.first_update();
        peer.session.push_update(&first);
        Ok(Self { door: door.clone(), peer, images, waits: Waits::default() })
    }

    /// Sends the answers that wait in front of the next image; false if `on_blocked` gave up.
    fn send_answers(&mut self, on_blocked: &mut dyn FnMut() -> ControlFlow<()>) -> Result<bool, ClientError> {
        if self.peer.session.output().is_empty() {
            return Ok(true);
        }
        let answers = self.peer.session.output().to_vec();
        self.peer.session.sent(answers.len());
        let mut slices = [IoSlice::new(&answers)];
        let mut rest = &mut slices[..];
        let sent = self.send(&mut rest, on_blocked)?;
        if sent == Sent::Stopped {
            let rest = rest.iter().flat_map(|slice| slice.to_vec()).collect();
            self.peer.session.put_back(rest);
        }
        Ok(sent == Sent::All)
    }
}

impl Framing for PvAccess {
    fn has_checksum(&self) -> bool {
        false
    }

    fn put_header(&self, event: &Event, _timestamp_ns: u64, _crc: u32, out: &mut Vec<u8>) {
        self.images.put_header(event, out);
    }

    fn put_trailer(&self, event: &Event, timestamp_ns: u64, out: &mut Vec<u8>) {
        self.images.put_trailer(event, timestamp_ns, out);
    }
}

impl Link for PvAccess {
    fn event_bytes_max(&self) -> u64 {
        u64::MAX
    }

    fn first_sequences(&self) -> Vec<u64> {
        vec![0]
    }

    fn credit(
        &mut self,
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, ClientError> {
        let begin_ns = monotonic_ns();
        let mut is_blocked = false;
        let credit = loop {
            if !self.send_answers(on_blocked)? {
                break None;
            }
            match self.peer.session.credit() {
                0 => {}
                credit => break Some(credit),
            }
            self.peer.listen()?;
            if self.peer.session.credit() > 0 {
                continue;
            }
            is_blocked = true;
            if on_blocked().is_break() {
                break None;
            }
            let polled = poll_slice(&self.peer.socket, PollFlags::IN);
            polled.map_err(|errno| self.peer.failed(errno.into()))?;
        };
        if is_blocked {
            self.waits.add(monotonic_ns() - begin_ns);
        }
        Ok(credit)
    }

    fn spend(&mut self, events: u64) {
        self.peer.session.spend(events);
    }

    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        let Self { peer: Peer { socket, addr, session }, waits, .. } = self;
        let (socket, addr) = (&*socket, *addr);
        let mut on_input = || listen(socket, addr, session);
        let sent = send_all(socket, slices, waits, on_blocked, &mut on_input);
        sent.map_err(|error| match error {
            SendError::Client(error) => error,
            SendError::Socket(errno) => ClientError::of_socket(SEND, addr, errno),
        })
    }

    fn poll(&mut self) -> Result<(), ClientError> {
        self.peer.listen()?;
        self.peer.answer().map_err(|source| self.peer.failed(source))
    }

    fn blocked_ns(&self) -> (u64, u64) {
        (self.waits.total_ns, self.waits.longest_ns)
    }

    fn durable_events(&self, _streams: &[StreamReport]) -> u64 {
        0
    }

    /// Waits until the receiver has acknowledged all images; its connection then stays open as long as the
    /// port. Others have everything when they close the connection after its end: those without a pipeline,
    /// and pvxs, which acknowledges half of its queue at once.
    fn finish(mut self: Box<Self>, _streams: &[StreamReport], timeout: Duration) -> Result<Bye, ClientError> {
        let begin_ns = monotonic_ns();
        let (mut is_shut, mut waiting, mut since_ns) = (false, u64::MAX, begin_ns);
        loop {
            let Peer { socket, session, .. } = &mut self.peer;
            let taken =
                read(socket, session).and_then(|()| if is_shut { Ok(()) } else { self.peer.answer() });
            match taken {
                // Without a pipeline nothing says what has arrived.
                Err(error)
                    if error.kind() == io::ErrorKind::UnexpectedEof
                        && (is_shut || self.peer.session.unacknowledged().is_none_or(|count| count == 0)) =>
                {
                    break;
                }
                Err(error) => return Err(self.peer.failed(error)),
                Ok(()) => {}
            }
            let (session, now_ns) = (&self.peer.session, monotonic_ns());
            let unacknowledged = session.unacknowledged();
            if unacknowledged == Some(0) && session.output().is_empty() {
                self.door.keep(self.peer.socket);
                break;
            }
            if unacknowledged.is_some_and(|count| count < waiting) {
                (waiting, since_ns) = (unacknowledged.unwrap_or(0), now_ns);
            }
            let is_stuck = unacknowledged.is_none() || now_ns - since_ns >= ACKNOWLEDGE_NS;
            if !is_shut && is_stuck && session.output().is_empty() {
                // A socket that is closed with unread data would cut what is in flight.
                let _ = self.peer.socket.shutdown(std::net::Shutdown::Write);
                is_shut = true;
            }
            if now_ns - begin_ns >= timeout.as_nanos() as u64 {
                return Err(self.timed_out("finish the monitor of", timeout));
            }
            let polled = poll_slice(&self.peer.socket, PollFlags::IN);
            polled.map_err(|errno| self.peer.failed(errno.into()))?;
        }
        Ok(Bye { streams: Vec::new() })
    }

    fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        ClientError::TimedOut { action, addr: self.peer.addr, waited }
    }
}

#[cfg(test)]
#[path = "pvaccess_tests.rs"]
mod tests;
