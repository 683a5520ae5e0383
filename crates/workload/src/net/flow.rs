//! One flow's side: a thread that sends, receives, asks or answers until it is told to end.
//!
//! Invariant: after its start a flow neither allocates nor locks; it counts into atomics that others read.
mod datagrams;
mod probe;
mod stream;

use std::net::{IpAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use keepup_measure::clock::Clock;

use super::spec::{NetSpec, Protocol, Role};
use super::wire::FlowReport;

pub(super) use datagrams::HEADER_BYTES;

/// How long a call into the kernel may wait before the thread looks whether it should end.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// What carries a flow.
pub(super) enum Wire {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

/// What a flow's thread and its owner share.
#[derive(Default)]
pub(super) struct Shared {
    /// Bytes of payload and messages moved so far.
    pub(super) bytes: AtomicU64,
    pub(super) messages: AtomicU64,
    /// When the window that counts began and ended, ns; 0 until it did.
    pub(super) window_begin_ns: AtomicU64,
    pub(super) window_end_ns: AtomicU64,
    /// Whoever sends ends now.
    pub(super) stop_sending: AtomicBool,
    /// The other end sends no more: whoever receives ends when nothing comes.
    pub(super) nothing_more: AtomicBool,
    /// Whoever still runs ends now.
    pub(super) abandon: AtomicBool,
}

impl Shared {
    pub(super) fn moved(&self, bytes: usize, messages: u64) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Whether a sender should end.
    pub(super) fn is_over(&self) -> bool {
        self.stop_sending.load(Ordering::Relaxed) || self.abandon.load(Ordering::Relaxed)
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandon.load(Ordering::Relaxed)
    }
}

/// One flow at one end.
pub(super) struct Flow {
    pub(super) number: u32,
    pub(super) role: Role,
    pub(super) wire: Wire,
    /// Whether this end is the client.
    pub(super) is_client: bool,
}

/// What every kind of flow is handed.
pub(super) struct Surroundings {
    pub(super) spec: NetSpec,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shared: Arc<Shared>,
}

impl Flow {
    /// Whether this end sends bytes that count.
    pub(super) fn sends(&self) -> bool {
        matches!(self.role, Role::Bulk { from_client } if from_client == self.is_client)
    }

    /// Whether this end receives bytes that count.
    pub(super) fn receives(&self) -> bool {
        matches!(self.role, Role::Bulk { from_client } if from_client != self.is_client)
    }

    /// Address of the other end.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        let peer = match &self.wire {
            Wire::Stream(stream) => stream.peer_addr(),
            Wire::Datagrams(socket) => socket.peer_addr(),
        };
        peer.ok().map(|peer| peer.ip())
    }

    /// Sets what the test wants of the socket.
    pub(super) fn prepare(&self, spec: &NetSpec) -> std::io::Result<()> {
        match &self.wire {
            Wire::Stream(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                stream.set_nodelay(spec.no_delay || self.role == Role::Probe)?;
                if let Some(name) = &spec.congestion {
                    rustix::net::sockopt::set_tcp_congestion(stream, name)?;
                }
                Ok(())
            }
            Wire::Datagrams(socket) => {
                socket.set_read_timeout(Some(PATIENCE))?;
                socket.set_write_timeout(Some(PATIENCE))?;
                datagrams::prepare(socket, self, spec)
            }
        }
    }

    /// Does its work until it is over; what it says of itself.
    pub(super) fn run(self, around: &Surroundings) -> FlowReport {
        let number = self.number;
        let (sends, is_client) = (self.sends(), self.is_client);
        let report = match (self.role, self.wire) {
            (Role::Probe, wire) if is_client => probe::ask(&wire, around),
            (Role::Probe, wire) => probe::answer(&wire, around),
            (Role::Bulk { .. }, Wire::Stream(stream)) if sends => stream::send(&stream, around),
            (Role::Bulk { .. }, Wire::Stream(stream)) => stream::receive(&stream, around),
            (Role::Bulk { .. }, Wire::Datagrams(socket)) if sends => datagrams::send(&socket, number, around),
            (Role::Bulk { .. }, Wire::Datagrams(socket)) => datagrams::receive(&socket, number, around),
        };
        FlowReport { number, ..report }
    }
}

/// Buffers that the test asks for; without limits where this process may, else as far as the system allows.
/// Before a connection is made or listened for, so that it counts from the first packet.
pub(super) fn set_buffers(socket: impl AsFd, spec: &NetSpec) -> std::io::Result<()> {
    use rustix::net::sockopt as option;
    let socket = socket.as_fd();
    if let Some(bytes) = spec.receive_buffer_bytes {
        option::set_socket_recv_buffer_size_force(socket, bytes)
            .or_else(|_| option::set_socket_recv_buffer_size(socket, bytes))?;
    }
    if let Some(bytes) = spec.send_buffer_bytes {
        option::set_socket_send_buffer_size_force(socket, bytes)
            .or_else(|_| option::set_socket_send_buffer_size(socket, bytes))?;
    }
    Ok(())
}

/// What a failed call means to a flow.
enum Trouble {
    /// Nothing came, or went, in time.
    Waited,
    /// Again.
    Again,
    /// The other end has gone or the network has.
    Broken(String),
}

fn trouble(why: &std::io::Error) -> Trouble {
    match why.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Trouble::Waited,
        std::io::ErrorKind::Interrupted => Trouble::Again,
        _ => Trouble::Broken(why.to_string()),
    }
}

/// Bytes that do not compress, the same for everybody.
fn filling(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(0x6b65_6570);
    let mut data = vec![0; bytes];
    random.fill(&mut data);
    data
}

/// Whether flows of this protocol are ports instead of connections.
pub(super) fn is_datagrams(spec: &NetSpec) -> bool {
    spec.protocol == Protocol::Udp
}
