//! One end of one flow: a thread that sends, receives, probes or answers until it is stopped.
//!
//! Invariant: after its start a flow neither allocates nor locks; it counts into atomics that other
//! threads read.
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

/// Timeout of a blocking kernel call, after which the thread checks its stop flags.
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// Transport of a flow.
pub(super) enum Wire {
    Stream(TcpStream),
    Datagrams(UdpSocket),
}

/// State shared by a flow's thread and its owner.
#[derive(Default)]
pub(super) struct Shared {
    /// Payload bytes and messages transferred so far.
    pub(super) bytes: AtomicU64,
    pub(super) messages: AtomicU64,
    /// Start and end of the measurement window, ns; 0 until set.
    pub(super) window_begin_ns: AtomicU64,
    pub(super) window_end_ns: AtomicU64,
    /// Senders stop.
    pub(super) stop_sending: AtomicBool,
    /// The peer sends no more: receivers stop when their input is empty.
    pub(super) sender_finished: AtomicBool,
    /// All threads stop immediately.
    pub(super) abandon: AtomicBool,
}

impl Shared {
    pub(super) fn moved(&self, bytes: usize, messages: u64) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// Whether a sender should stop.
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

/// Inputs common to all kinds of flows.
pub(super) struct FlowContext {
    pub(super) spec: NetSpec,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) shared: Arc<Shared>,
}

impl Flow {
    /// Whether this end sends measured bytes.
    pub(super) fn sends(&self) -> bool {
        matches!(self.role, Role::Bulk { from_client } if from_client == self.is_client)
    }

    /// Whether this end receives measured bytes.
    pub(super) fn receives(&self) -> bool {
        matches!(self.role, Role::Bulk { from_client } if from_client != self.is_client)
    }

    /// Address of the peer.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        let peer = match &self.wire {
            Wire::Stream(stream) => stream.peer_addr(),
            Wire::Datagrams(socket) => socket.peer_addr(),
        };
        peer.ok().map(|peer| peer.ip())
    }

    /// Applies the test's socket options.
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

    /// Runs the flow until it is stopped and returns its report.
    pub(super) fn run(self, flow_context: &FlowContext) -> FlowReport {
        let number = self.number;
        let (sends, is_client) = (self.sends(), self.is_client);
        let report = match (self.role, self.wire) {
            (Role::Probe, wire) if is_client => probe::ask(&wire, flow_context),
            (Role::Probe, wire) => probe::answer(&wire, flow_context),
            (Role::Bulk { .. }, Wire::Stream(stream)) if sends => stream::send(&stream, flow_context),
            (Role::Bulk { .. }, Wire::Stream(stream)) => stream::receive(&stream, flow_context),
            (Role::Bulk { .. }, Wire::Datagrams(socket)) if sends => {
                datagrams::send(&socket, number, flow_context)
            }
            (Role::Bulk { .. }, Wire::Datagrams(socket)) => datagrams::receive(&socket, number, flow_context),
        };
        FlowReport { number, ..report }
    }
}

/// Sets the requested buffer sizes, beyond the system's limits if this process has the privilege.
/// Called before connecting or listening so that it applies from the first packet.
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

/// Classification of a failed socket call.
enum CallFailure {
    /// Timed out.
    Waited,
    /// Interrupted; retry.
    Again,
    /// The peer or the network is gone.
    Broken(String),
}

fn classify_failure(why: &std::io::Error) -> CallFailure {
    match why.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => CallFailure::Waited,
        std::io::ErrorKind::Interrupted => CallFailure::Again,
        _ => CallFailure::Broken(why.to_string()),
    }
}

/// Deterministic incompressible payload.
fn incompressible_bytes(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(0x6b65_6570);
    let mut data = vec![0; bytes];
    random.fill(&mut data);
    data
}

/// Whether flows of this protocol use ports instead of connections.
pub(super) fn is_datagrams(spec: &NetSpec) -> bool {
    spec.protocol == Protocol::Udp
}
