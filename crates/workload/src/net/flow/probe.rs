//! Latency probe: the client sends small messages on an open-loop schedule, the server echoes them.
//! Latency counts from a message's due time.
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::histogram::Latency;
use keepup_results::{LatencyFigures, NetLatency};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::datagrams::{read_stamp, stamp};
use super::{CallFailure, FlowContext, PATIENCE, Shared, Wire, classify_failure};
use crate::net::spec::Probe;
use crate::net::wire::FlowReport;

/// Wait for outstanding answers after the last message.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl Wire {
    fn send(&self, data: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Stream(stream) => write_all(stream, data),
            Self::Datagrams(socket) => socket.send(data).map(drop),
        }
    }

    fn receive(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Stream(stream) => (&mut &*stream).read(buffer),
            Self::Datagrams(socket) => receive_datagram(socket, buffer),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Stream(stream) => stream.as_fd(),
            Self::Datagrams(socket) => socket.as_fd(),
        }
    }
}

/// Writes a whole message, with a bounded number of retries: a partial message would corrupt the
/// stream.
fn write_all(mut stream: &TcpStream, mut data: &[u8]) -> std::io::Result<()> {
    let mut waits = 0;
    while !data.is_empty() {
        match stream.write(data) {
            Ok(sent) => data = &data[sent..],
            Err(why) => match classify_failure(&why) {
                CallFailure::Again => {}
                CallFailure::Waited if waits < 100 => waits += 1,
                CallFailure::Waited => return Err(std::io::Error::other("the other end reads nothing")),
                CallFailure::Broken(_) => return Err(why),
            },
        }
    }
    Ok(())
}

/// Receives a datagram; an empty datagram must not be taken for the end of a stream.
fn receive_datagram(socket: &UdpSocket, buffer: &mut [u8]) -> std::io::Result<usize> {
    match socket.recv(buffer)? {
        0 => Err(std::io::ErrorKind::Interrupted.into()),
        bytes => Ok(bytes),
    }
}

/// State of the probing side.
struct ProbeClient<'a> {
    probe: Probe,
    shared: &'a Shared,
    latency: Latency,
    sent: u64,
    answered: u64,
    /// Bytes of an incomplete answer.
    partial: Vec<u8>,
}

impl ProbeClient<'_> {
    /// Whether the due time lies in the measurement window.
    fn counts(&self, due_ns: u64) -> bool {
        let begin_ns = self.shared.window_begin_ns.load(Ordering::Relaxed);
        let end_ns = self.shared.window_end_ns.load(Ordering::Relaxed);
        begin_ns > 0 && due_ns >= begin_ns && (end_ns == 0 || due_ns < end_ns)
    }

    /// Processes received bytes.
    fn process(&mut self, data: &[u8], now_ns: u64) {
        self.partial.extend_from_slice(data);
        let bytes = self.probe.bytes;
        let whole = self.partial.len() / bytes * bytes;
        for answer in self.partial[..whole].chunks(bytes) {
            let Some((_, _, due_ns)) = read_stamp(answer) else { continue };
            if self.counts(due_ns) {
                self.answered += 1;
                self.latency.record_ns(now_ns.saturating_sub(due_ns));
            }
        }
        self.partial.drain(..whole);
    }
}

/// Probes until stopped, then waits for outstanding answers.
pub(super) fn ask(wire: &Wire, flow_context: &FlowContext) -> FlowReport {
    let Some(probe) = flow_context.spec.probe else { return FlowReport::default() };
    let partial = Vec::with_capacity(2 * probe.bytes + READ_BYTES);
    let (latency, shared) = (Latency::new(), flow_context.shared.as_ref());
    let mut probe_client = ProbeClient { probe, shared, latency, sent: 0, answered: 0, partial };
    let failure = converse(wire, flow_context, &mut probe_client).err();
    let latency = NetLatency {
        per_second: probe.per_second,
        bytes: probe.bytes as u64,
        sent: probe_client.sent,
        answered: probe_client.answered,
        figures: (probe_client.answered > 0).then(|| LatencyFigures::from(&probe_client.latency)),
    };
    if let Wire::Stream(stream) = wire {
        drop(stream.shutdown(std::net::Shutdown::Write));
    }
    FlowReport { latency: Some(latency), failure, ..FlowReport::default() }
}

/// Read buffer size.
const READ_BYTES: usize = 64 << 10;

fn converse(
    wire: &Wire,
    flow_context: &FlowContext,
    probe_client: &mut ProbeClient<'_>,
) -> Result<(), String> {
    let (clock, shared) = (flow_context.clock.as_ref(), flow_context.shared.as_ref());
    let period_ns = 1e9 / probe_client.probe.per_second;
    let (begin_ns, mut number) = (clock.now_ns(), 0u64);
    let (mut message, mut buffer) =
        (super::incompressible_bytes(probe_client.probe.bytes), vec![0; READ_BYTES]);
    let mut over_ns = None;
    loop {
        let now_ns = clock.now_ns();
        if over_ns.is_none() && shared.is_over() {
            over_ns = Some(now_ns);
        }
        let waited = over_ns.map(|over_ns| Duration::from_nanos(now_ns.saturating_sub(over_ns)));
        if shared.is_abandoned()
            || waited.is_some_and(|t| probe_client.answered >= probe_client.sent || t > LAST_ANSWERS)
        {
            return Ok(());
        }
        let due_ns = begin_ns + (number as f64 * period_ns) as u64;
        if over_ns.is_none() && now_ns >= due_ns {
            stamp(&mut message, 0, number, due_ns);
            number += 1;
            probe_client.sent += u64::from(probe_client.counts(due_ns));
            match wire.send(&message).as_ref().map_err(classify_failure) {
                Ok(()) | Err(CallFailure::Waited | CallFailure::Again) => {}
                Err(CallFailure::Broken(why)) => return Err(why),
            }
            continue;
        }
        let patience = match over_ns {
            None => Duration::from_nanos(due_ns - now_ns).min(PATIENCE),
            Some(_) => PATIENCE,
        };
        if !is_readable(wire, patience) {
            continue;
        }
        match wire.receive(&mut buffer).as_ref().map_err(classify_failure) {
            Ok(0) => return Err("the other end has closed it".into()),
            Ok(bytes) => probe_client.process(&buffer[..*bytes], clock.now_ns()),
            Err(CallFailure::Waited | CallFailure::Again) => {}
            Err(CallFailure::Broken(why)) => return Err(why),
        }
    }
}

/// Whether the socket is readable now or becomes so within `patience`.
fn is_readable(wire: &Wire, patience: Duration) -> bool {
    let mut wanted = [PollFd::new(wire, PollFlags::IN)];
    let limit = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    poll(&mut wanted, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Echoes messages until the peer ends.
pub(super) fn answer(wire: &Wire, flow_context: &FlowContext) -> FlowReport {
    let shared = flow_context.shared.as_ref();
    let mut buffer = vec![0; READ_BYTES];
    let mut report = FlowReport::default();
    while !shared.is_abandoned() {
        let done = match wire.receive(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => wire.send(&buffer[..bytes]),
            Err(why) => Err(why),
        };
        match done.as_ref().map_err(classify_failure) {
            Ok(()) | Err(CallFailure::Again) => {}
            Err(CallFailure::Waited) => {
                // Datagrams have no end-of-stream.
                let is_over = shared.sender_finished.load(Ordering::Relaxed);
                if is_over && matches!(wire, Wire::Datagrams(_)) {
                    break;
                }
            }
            Err(CallFailure::Broken(why)) => {
                report.failure = Some(why);
                break;
            }
        }
    }
    report
}
