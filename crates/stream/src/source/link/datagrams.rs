//! A socket that sends trains of datagrams, cut by the kernel where it can (`UDP_SEGMENT`).
use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::Duration;

use keepup_peer::Endpoint;
use keepup_sys::datagram::{DATAGRAM_BYTES_MAX, SEGMENTS_MAX, set_segment_bytes};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::client::{ClientError, Waits};

/// What became of a train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Train {
    /// The kernel took it.
    Sent,
    /// The caller gave up.
    Stopped,
    /// The kernel does not cut datagrams of this length: send one datagram at a time.
    TooLong,
}

/// The socket.
pub(super) struct Datagrams {
    socket: UdpSocket,
    to: SocketAddr,
    /// Length of datagrams into which the kernel cuts what is sent; 0: it does not. `None`: it cannot.
    segment_bytes: Option<usize>,
    waits: Waits,
}

impl Datagrams {
    /// Opens a socket towards `to`.
    pub(super) fn open(to: &Endpoint) -> Result<Self, ClientError> {
        let addr = to.address();
        let io = |source| ClientError::Io { action: "send to", addr, source };
        let any: SocketAddr = match addr {
            SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
            SocketAddr::V6(_) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(io)?;
        socket.connect(addr).map_err(io)?;
        socket.set_nonblocking(true).map_err(io)?;
        Ok(Self { socket, to: addr, segment_bytes: Some(0), waits: Waits::default() })
    }

    /// Most datagrams of `bytes` in a train.
    pub(super) fn datagrams_max(&self, bytes: usize) -> usize {
        match self.segment_bytes {
            Some(_) => SEGMENTS_MAX.min(DATAGRAM_BYTES_MAX / bytes.max(1)).max(1),
            None => 1,
        }
    }

    /// Sends a train of datagrams of `bytes` each; the last one may be shorter.
    ///
    /// # Errors
    /// The kernel's; nobody receives at the address.
    pub(super) fn send(
        &mut self,
        train: &[IoSlice<'_>],
        bytes: usize,
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Train, ClientError> {
        if self.segment_bytes.is_some_and(|segment_bytes| segment_bytes != bytes) {
            self.segment_bytes = set_segment_bytes(self.socket.as_fd(), bytes).ok().map(|()| bytes);
            if self.segment_bytes.is_none() {
                return Ok(Train::TooLong);
            }
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match sendmsg(&self.socket, train, &mut SendAncillaryBuffer::default(), flags) {
                Ok(_) => return Ok(Train::Sent),
                Err(Errno::AGAIN | Errno::NOBUFS) => {
                    // Nobody answers packets.
                    let is_writable = self.waits.wait_writable(&self.socket, on_blocked, &mut || Ok(()));
                    if !is_writable.unwrap_or(true) {
                        return Ok(Train::Stopped);
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::INVAL | Errno::MSGSIZE | Errno::IO) if self.segment_bytes.is_some() => {
                    // Datagrams longer than a packet of this network are sent one by one, in fragments.
                    let _ = set_segment_bytes(self.socket.as_fd(), 0);
                    self.segment_bytes = None;
                    return Ok(Train::TooLong);
                }
                Err(Errno::CONNREFUSED) => return Err(ClientError::NotListening { addr: self.to }),
                Err(errno) => {
                    return Err(ClientError::Io { action: "send to", addr: self.to, source: errno.into() });
                }
            }
        }
    }

    /// Time spent waiting for space in the socket, and the longest single wait, ns.
    pub(super) fn blocked_ns(&self) -> (u64, u64) {
        (self.waits.total_ns, self.waits.longest_ns)
    }

    /// Error of a caller that gave up after `waited`.
    pub(super) fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        ClientError::TimedOut { action, addr: self.to, waited }
    }
}
