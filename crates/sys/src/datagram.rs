//! Batched datagrams: `sendmmsg` and `recvmmsg`, segmentation (`UDP_SEGMENT`) and joining
//! (`UDP_GRO`), which `rustix` does not offer.
//!
//! Invariant of a [`Batch`]: the kernel sees only memory that the batch owns, and only during a
//! call.
use std::io::{Error, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};

mod ring;

pub use ring::RingReceiver;

/// Most datagrams, or trains of them, per call.
pub const BATCH_MAX: usize = 64;
/// Largest payload of an IPv4 datagram, in bytes; also the limit of a train of segments.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
/// Most segments of one train (UDP_MAX_SEGMENTS of kernels before 6.9).
pub const SEGMENTS_MAX: usize = 64;

/// Space for the control messages of a train: length of its segments, drops, time of arrival, destination.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Memory for messages of one size, and the state of each.
pub struct Batch {
    memory: Vec<u8>,
    bytes_each: usize,
    count: usize,
    received: Vec<Message>,
    /// Sender of each message; an IPv4 address is shorter and has the same start.
    names: Vec<libc::sockaddr_in6>,
    /// Destination of each message, if known.
    destinations: Vec<Option<SocketAddr>>,
}

/// Length of one message and its position in the receiver's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Message {
    begin: usize,
    bytes: usize,
    notes: Notes,
    is_truncated: bool,
}

/// What the kernel notes on a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Notes {
    segment_bytes: Option<usize>,
    drops: u32,
    arrived_ns: Option<u64>,
    destination: Option<IpAddr>,
}

/// Received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Its bytes; several consecutive datagrams if the kernel joined them.
    pub data: &'a [u8],
    /// Length of each datagram in `data` except the last, which may be shorter; at least 1.
    pub segment_bytes: usize,
    /// It was longer than the buffer: the rest is lost.
    pub is_truncated: bool,
    /// Messages that the kernel had dropped when this one arrived, because the socket's buffer was full;
    /// wraps around. 0 without [`set_notes`].
    pub drops: u32,
    /// When it arrived at this machine, ns since the Unix epoch; only with [`set_notes`].
    pub arrived_ns: Option<u64>,
}

impl Message {
    fn of(self, data: &[u8]) -> Received<'_> {
        let Notes { segment_bytes, drops, arrived_ns, .. } = self.notes;
        let segment_bytes = segment_bytes.unwrap_or(self.bytes).max(1);
        Received { data, segment_bytes, is_truncated: self.is_truncated, drops, arrived_ns }
    }
}

/// Receiver of datagrams in batches.
pub trait DatagramReceiver {
    /// Most messages per call.
    fn most(&self) -> usize;

    /// Receives at least one message, and those that have arrived already, up to
    /// [`most`](Self::most); always from the same socket. Returns their number; discards the
    /// messages of the previous call.
    ///
    /// # Errors
    /// The kernel's; `WouldBlock` or `TimedOut` when nothing arrived in time.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<usize>;

    /// Message of the last successful call, counted from 0.
    fn received(&self, index: usize) -> Option<Received<'_>>;
}

impl Batch {
    /// Allocates `count` messages (at most [`BATCH_MAX`], at least 1) of `bytes_each`, at least
    /// 1.
    pub fn new(count: usize, bytes_each: usize) -> Self {
        let (count, bytes_each) = (count.clamp(1, BATCH_MAX), bytes_each.max(1));
        let (memory, received) = (vec![0; count * bytes_each], Vec::with_capacity(count));
        let (names, destinations) = (vec![EMPTY_NAME; count], vec![None; count]);
        Self { memory, bytes_each, count, received, names, destinations }
    }

    /// Memory of message `index`.
    ///
    /// # Panics
    /// The batch has no such message.
    pub fn message_mut(&mut self, index: usize) -> &mut [u8] {
        assert!(index < self.count, "message {index} of {}", self.count);
        &mut self.memory[index * self.bytes_each..][..self.bytes_each]
    }

    /// Sends the first messages over a connected socket, one per entry of `lengths`, each of that
    /// length. Returns the number sent.
    ///
    /// # Errors
    /// The kernel's, when not even the first was sent.
    pub fn send(&mut self, socket: BorrowedFd<'_>, lengths: &[usize]) -> Result<usize> {
        let mut vectors = [EMPTY_VECTOR; BATCH_MAX];
        let mut headers = [EMPTY_HEADER; BATCH_MAX];
        let count = lengths.len().min(self.count);
        for (index, length) in lengths.iter().take(count).enumerate() {
            let bytes = (*length).min(self.bytes_each);
            vectors[index].iov_base = self.memory[index * self.bytes_each..].as_mut_ptr().cast();
            vectors[index].iov_len = bytes;
            headers[index].msg_hdr.msg_iov = &raw mut vectors[index];
            headers[index].msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each of the first `count` headers points to a vector of this frame, which points to at most
        // `bytes_each` bytes of `memory` from its place on; all of them outlive the call.
        let sent = unsafe {
            // glibc and musl have other types for flags and lengths.
            libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), count as u32, libc::MSG_NOSIGNAL as _)
        };
        if sent < 0 { Err(Error::last_os_error()) } else { Ok(sent as usize) }
    }

    /// Adds a message as if it had been received, for packets of a file; returns whether there was space.
    pub fn put(
        &mut self,
        data: &[u8],
        (sender, destination): (SocketAddr, Option<SocketAddr>),
        arrived_ns: u64,
    ) -> bool {
        let index = self.received.len();
        if index == self.count || data.len() > self.bytes_each {
            return false;
        }
        let begin = index * self.bytes_each;
        self.memory[begin..][..data.len()].copy_from_slice(data);
        (self.names[index], self.destinations[index]) = (name_of(sender), destination);
        let notes = Notes { arrived_ns: Some(arrived_ns), ..Notes::default() };
        self.received.push(Message { begin, bytes: data.len(), notes, is_truncated: false });
        true
    }

    /// Forgets all messages.
    pub fn clear(&mut self) {
        self.received.clear();
    }

    /// Sender of message `index` of the last [`receive`](Self::receive); `None` without such a
    /// message or an internet address.
    pub fn peer(&self, index: usize) -> Option<SocketAddr> {
        let name = self.names.get(index).filter(|_| index < self.received.len())?;
        let port = u16::from_be(name.sin6_port);
        match i32::from(name.sin6_family) {
            libc::AF_INET => {
                // An IPv4 address is where IPv6 has its flow information.
                let ip = Ipv4Addr::from(name.sin6_flowinfo.to_ne_bytes());
                Some(SocketAddrV4::new(ip, port).into())
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
                Some(SocketAddrV6::new(ip, port, name.sin6_flowinfo, name.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

impl Batch {
    /// Destination of message `index`: with port 0 for one that was received with [`set_destinations`];
    /// `None` if it is not known.
    pub fn destination(&self, index: usize) -> Option<SocketAddr> {
        self.destinations.get(index).copied().flatten().filter(|_| index < self.received.len())
    }
}

impl DatagramReceiver for Batch {
    fn most(&self) -> usize {
        self.count
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<usize> {
        let mut vectors = [EMPTY_VECTOR; BATCH_MAX];
        let mut headers = [EMPTY_HEADER; BATCH_MAX];
        let mut controls = [Control([0; size_of::<Control>()]); BATCH_MAX];
        let count = self.count;
        for index in 0..count {
            vectors[index].iov_base = self.memory[index * self.bytes_each..].as_mut_ptr().cast();
            vectors[index].iov_len = self.bytes_each;
            headers[index].msg_hdr.msg_iov = &raw mut vectors[index];
            headers[index].msg_hdr.msg_iovlen = 1;
            self.names[index] = EMPTY_NAME;
            headers[index].msg_hdr.msg_name = (&raw mut self.names[index]).cast();
            headers[index].msg_hdr.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            headers[index].msg_hdr.msg_control = (&raw mut controls[index]).cast();
            headers[index].msg_hdr.msg_controllen = size_of::<Control>() as _;
        }
        self.received.clear();
        // SAFETY: each of the first `count` headers points to a vector and a control buffer of this frame
        // and to a name of its own, with their true sizes, the vectors to `bytes_each` bytes of `memory`; all
        // of them outlive the call.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                count as u32,
                libc::MSG_WAITFORONE as _,
                std::ptr::null_mut(),
            )
        };
        if got < 0 {
            return Err(Error::last_os_error());
        }
        for (index, header) in headers.iter().take(got as usize).enumerate() {
            let bytes = (header.msg_len as usize).min(self.bytes_each);
            let notes = notes(&header.msg_hdr);
            self.destinations[index] = notes.destination.map(|ip| SocketAddr::new(ip, 0));
            self.received.push(Message {
                begin: index * self.bytes_each,
                bytes,
                notes,
                is_truncated: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            });
        }
        Ok(got as usize)
    }

    fn received(&self, index: usize) -> Option<Received<'_>> {
        let message = self.received.get(index)?;
        Some(message.of(&self.memory[message.begin..][..message.bytes]))
    }
}

const EMPTY_NAME: libc::sockaddr_in6 = libc::sockaddr_in6 {
    sin6_family: 0,
    sin6_port: 0,
    sin6_flowinfo: 0,
    sin6_addr: libc::in6_addr { s6_addr: [0; 16] },
    sin6_scope_id: 0,
};

/// Name of a sender, as [`Batch::peer`] reads it.
fn name_of(sender: SocketAddr) -> libc::sockaddr_in6 {
    let sin6_port = sender.port().to_be();
    match sender {
        SocketAddr::V4(v4) => libc::sockaddr_in6 {
            sin6_family: libc::AF_INET as _,
            sin6_port,
            sin6_flowinfo: u32::from_ne_bytes(v4.ip().octets()),
            ..EMPTY_NAME
        },
        SocketAddr::V6(v6) => libc::sockaddr_in6 {
            sin6_family: libc::AF_INET6 as _,
            sin6_port,
            sin6_flowinfo: v6.flowinfo(),
            sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
            sin6_scope_id: v6.scope_id(),
        },
    }
}

const EMPTY_VECTOR: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
// SAFETY: a header of zeros is valid: no name, no vectors, no control messages, no flags.
const EMPTY_HEADER: libc::mmsghdr = unsafe { std::mem::zeroed() };

/// What the kernel noted.
fn notes(header: &libc::msghdr) -> Notes {
    let mut notes = Notes::default();
    // SAFETY: the kernel filled `msg_control` with whole control messages up to `msg_controllen`, and the
    // macros of libc stay within that; the buffer is aligned for headers and alive.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(current) = message.as_ref() {
            let value = libc::CMSG_DATA(message);
            match (current.cmsg_level, current.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let bytes: libc::c_int = std::ptr::read_unaligned(value.cast());
                    notes.segment_bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                    notes.drops = std::ptr::read_unaligned(value.cast());
                }
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time: libc::timespec = std::ptr::read_unaligned(value.cast());
                    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
                    notes.arrived_ns = Some(whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)));
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info: libc::in_pktinfo = std::ptr::read_unaligned(value.cast());
                    notes.destination = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info: libc::in6_pktinfo = std::ptr::read_unaligned(value.cast());
                    notes.destination = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    notes
}

/// Splits sends into datagrams of `bytes` in the kernel or in the card; 0 turns it off.
///
/// # Errors
/// Kernels before 4.18.
pub fn set_segment_bytes(socket: BorrowedFd<'_>, bytes: usize) -> Result<()> {
    super::socket::set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, i32::try_from(bytes).unwrap_or(0))
}

/// Lets the kernel join datagrams of one sender and size before they are received.
///
/// # Errors
/// Kernels before 5.0.
pub fn set_join(socket: BorrowedFd<'_>, is_on: bool) -> Result<()> {
    super::socket::set_option(socket, libc::SOL_UDP, libc::UDP_GRO, i32::from(is_on))
}

/// Lets the kernel note on every message what it has dropped before, and when the message arrived.
///
/// # Errors
/// The kernel's.
pub fn set_notes(socket: BorrowedFd<'_>) -> Result<()> {
    super::socket::set_option(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
    super::socket::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Lets the kernel note the destination of every message, for a socket that receives on several addresses.
///
/// # Errors
/// The kernel's.
pub fn set_destinations(socket: BorrowedFd<'_>, is_ipv6: bool) -> Result<()> {
    match is_ipv6 {
        true => super::socket::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
        false => super::socket::set_option(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 1),
    }
}

/// Makes sends fail (ENOBUFS) when the interface's queue is full, instead of dropping silently.
///
/// # Errors
/// The kernel's.
pub fn set_report_drops(socket: BorrowedFd<'_>, is_ipv6: bool) -> Result<()> {
    match is_ipv6 {
        true => super::socket::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1),
        false => super::socket::set_option(socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1),
    }
}

#[cfg(test)]
#[path = "datagram_tests.rs"]
mod tests;
