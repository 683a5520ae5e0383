//! Byte stream over TCP.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_results::NetTransport;
use keepup_sys::socket::{set_receive_low_water, tcp_info};
use rustix::net::{RecvFlags, sockopt};

use super::{CallFailure, FlowContext, classify_failure, incompressible_bytes};
use crate::net::spec::NetSpec;
use crate::net::wire::FlowReport;

/// Receive size: larger reads leave the CPU's inner caches and cost more.
const RECEIVE_BYTES: usize = 64 << 10;
/// Low-water mark of a receiver, bounded in time by [`super::PATIENCE`]: one wake-up costs about as
/// much as copying 10 KiB.
const WAKE_BYTES: usize = 2 * RECEIVE_BYTES;

/// Backlog after which overdue messages are dropped, ns.
const LATE_MOST_NS: u64 = 1_000_000_000;

/// Source of the sent bytes.
enum PayloadSource {
    Memory(Vec<u8>),
    /// An in-memory file, sent without a copy.
    File(OwnedFd),
}

impl PayloadSource {
    fn new(spec: &NetSpec) -> std::io::Result<Self> {
        let data = incompressible_bytes(spec.message_bytes);
        if !spec.zero_copy {
            return Ok(Self::Memory(data));
        }
        let file = rustix::fs::memfd_create("keepup-net", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        file.write_all(&data)?;
        Ok(Self::File(file.into()))
    }

    /// Sends the rest of a message from `offset` on, possibly only in part.
    fn send(&self, mut to: &TcpStream, offset: usize, bytes: usize) -> std::io::Result<usize> {
        match self {
            Self::Memory(data) => to.write(&data[offset..bytes]),
            Self::File(file) => {
                let mut at = offset as u64;
                Ok(rustix::fs::sendfile(to, file, Some(&mut at), bytes - offset)?)
            }
        }
    }
}

/// Sends messages until stopped, each at its due time.
pub(super) fn send(stream: &TcpStream, flow_context: &FlowContext) -> FlowReport {
    let mut report = FlowReport::default();
    match PayloadSource::new(&flow_context.spec) {
        Ok(from) => report.failure = pump(stream, &from, flow_context).err(),
        Err(why) => report.failure = Some(why.to_string()),
    }
    report.transport = transport(stream);
    drop(stream.shutdown(Shutdown::Write));
    report
}

fn pump(stream: &TcpStream, from: &PayloadSource, flow_context: &FlowContext) -> Result<(), String> {
    let (bytes, shared) = (flow_context.spec.message_bytes, &flow_context.shared);
    let mut due =
        Due::new(flow_context.spec.rate.map(|rate| rate / bytes as f64), flow_context.clock.as_ref());
    let mut offset = 0;
    while !shared.is_over() {
        if offset == 0 && !due.is_now(flow_context.clock.as_ref()) {
            continue;
        }
        match from.send(stream, offset, bytes).as_ref().map_err(classify_failure) {
            Ok(sent) => {
                offset = (offset + sent) % bytes;
                shared.moved(*sent, u64::from(offset == 0));
            }
            Err(CallFailure::Waited | CallFailure::Again) => {}
            Err(CallFailure::Broken(why)) => return Err(why),
        }
    }
    Ok(())
}

/// Evenly spaced due times of messages.
struct Due {
    per_second: Option<f64>,
    begin_ns: u64,
    sent: u64,
}

impl Due {
    fn new(per_second: Option<f64>, clock: &dyn Clock) -> Self {
        Self { per_second, begin_ns: clock.now_ns(), sent: 0 }
    }

    /// Whether the next message is due (and counts it); waits briefly otherwise.
    fn is_now(&mut self, clock: &dyn Clock) -> bool {
        if let Some(per_second) = self.per_second {
            let due_ns = self.begin_ns + (self.sent as f64 / per_second * 1e9) as u64;
            // Older messages are dropped: a long backlog is not sent in a burst.
            self.begin_ns += clock.now_ns().saturating_sub(due_ns).saturating_sub(LATE_MOST_NS);
            let early = Duration::from_nanos(due_ns.saturating_sub(clock.now_ns()));
            if !early.is_zero() {
                std::thread::sleep(early.min(super::PATIENCE));
                return false;
            }
        }
        self.sent += 1;
        true
    }
}

/// Receives until the sender has ended.
pub(super) fn receive(mut stream: &TcpStream, flow_context: &FlowContext) -> FlowReport {
    let shared = &flow_context.shared;
    let mut buffer = vec![0; RECEIVE_BYTES];
    set_receive_low_water(stream.as_fd(), WAKE_BYTES);
    let mut report = FlowReport::default();
    while !shared.is_abandoned() {
        let received = match flow_context.spec.discard {
            true => rustix::net::recv(stream, &mut buffer, RecvFlags::TRUNC)
                .map(|(_, bytes)| bytes)
                .map_err(std::io::Error::from),
            false => stream.read(&mut buffer),
        };
        match received.as_ref().map_err(classify_failure) {
            Ok(0) => break,
            Ok(bytes) => shared.moved(*bytes, 0),
            Err(CallFailure::Waited | CallFailure::Again) => {}
            Err(CallFailure::Broken(why)) => {
                report.failure = Some(why);
                break;
            }
        }
    }
    report.receive_buffer_bytes = sockopt::socket_recv_buffer_size(stream).ok().map(|bytes| bytes as u64);
    report
}

/// Kernel statistics of the connection (`TCP_INFO`).
pub(super) fn transport(stream: &TcpStream) -> Option<NetTransport> {
    let info = tcp_info(stream.as_fd()).ok()?;
    let is_ipv6 = stream.peer_addr().is_ok_and(|peer| peer.is_ipv6());
    let mtu = if is_ipv6 { sockopt::ipv6_mtu(stream) } else { sockopt::ip_mtu(stream) };
    Some(NetTransport {
        retransmits: info.retransmits,
        rtt_us: info.rtt_us,
        segment_bytes: info.segment_bytes,
        path_mtu_bytes: mtu.ok(),
        congestion: sockopt::tcp_congestion(stream).ok(),
        send_buffer_bytes: sockopt::socket_send_buffer_size(stream).unwrap_or(0) as u64,
    })
}
