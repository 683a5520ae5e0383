//! Bytes over TCP.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_results::NetTransport;
use keepup_sys::socket::{set_receive_low_water, tcp_info};
use rustix::net::{RecvFlags, sockopt};

use super::{Surroundings, Trouble, filling, trouble};
use crate::net::spec::NetSpec;
use crate::net::wire::FlowReport;

/// What a receiver asks for at a time: more leaves the processor's nearer caches and costs more.
const RECEIVE_BYTES: usize = 64 << 10;
/// A receiver is woken when so much is there, or when it has waited for [`super::PATIENCE`]: each time
/// costs as much as copying some ten KiB.
const WAKE_BYTES: usize = 2 * RECEIVE_BYTES;

/// Messages that are later than this are left out, ns.
const LATE_MOST_NS: u64 = 1_000_000_000;

/// What messages are sent from.
enum From {
    Memory(Vec<u8>),
    /// A file in memory, whose pages are sent as they are.
    File(OwnedFd),
}

impl From {
    fn new(spec: &NetSpec) -> std::io::Result<Self> {
        let data = filling(spec.message_bytes);
        if !spec.zero_copy {
            return Ok(Self::Memory(data));
        }
        let file = rustix::fs::memfd_create("keepup-net", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        file.write_all(&data)?;
        Ok(Self::File(file.into()))
    }

    /// Sends what is left of a message from `offset` on, or a part of that.
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

/// Sends messages until it is over, each when it is due.
pub(super) fn send(stream: &TcpStream, around: &Surroundings) -> FlowReport {
    let mut report = FlowReport::default();
    match From::new(&around.spec) {
        Ok(from) => report.failure = pump(stream, &from, around).err(),
        Err(why) => report.failure = Some(why.to_string()),
    }
    report.transport = transport(stream);
    drop(stream.shutdown(Shutdown::Write));
    report
}

fn pump(stream: &TcpStream, from: &From, around: &Surroundings) -> Result<(), String> {
    let (bytes, shared) = (around.spec.message_bytes, &around.shared);
    let mut due = Due::new(around.spec.rate.map(|rate| rate / bytes as f64), around.clock.as_ref());
    let mut offset = 0;
    while !shared.is_over() {
        if offset == 0 && !due.is_now(around.clock.as_ref()) {
            continue;
        }
        match from.send(stream, offset, bytes).as_ref().map_err(trouble) {
            Ok(sent) => {
                offset = (offset + sent) % bytes;
                shared.moved(*sent, u64::from(offset == 0));
            }
            Err(Trouble::Waited | Trouble::Again) => {}
            Err(Trouble::Broken(why)) => return Err(why),
        }
    }
    Ok(())
}

/// Times at which messages are due, evenly spread from the first on.
struct Due {
    per_second: Option<f64>,
    begin_ns: u64,
    sent: u64,
}

impl Due {
    fn new(per_second: Option<f64>, clock: &dyn Clock) -> Self {
        Self { per_second, begin_ns: clock.now_ns(), sent: 0 }
    }

    /// Whether the next message is due, and counts it then; else waits a while for it.
    fn is_now(&mut self, clock: &dyn Clock) -> bool {
        if let Some(per_second) = self.per_second {
            let due_ns = self.begin_ns + (self.sent as f64 / per_second * 1e9) as u64;
            // What is later than that is left out: nobody is sent hours of it in a rush.
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
pub(super) fn receive(mut stream: &TcpStream, around: &Surroundings) -> FlowReport {
    let shared = &around.shared;
    let mut buffer = vec![0; RECEIVE_BYTES];
    set_receive_low_water(stream.as_fd(), WAKE_BYTES);
    let mut report = FlowReport::default();
    while !shared.is_abandoned() {
        let received = match around.spec.discard {
            true => rustix::net::recv(stream, &mut buffer, RecvFlags::TRUNC)
                .map(|(_, bytes)| bytes)
                .map_err(std::io::Error::from),
            false => stream.read(&mut buffer),
        };
        match received.as_ref().map_err(trouble) {
            Ok(0) => break,
            Ok(bytes) => shared.moved(*bytes, 0),
            Err(Trouble::Waited | Trouble::Again) => {}
            Err(Trouble::Broken(why)) => {
                report.failure = Some(why);
                break;
            }
        }
    }
    report.receive_buffer_bytes = sockopt::socket_recv_buffer_size(stream).ok().map(|bytes| bytes as u64);
    report
}

/// What the kernel knows of the connection now.
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
