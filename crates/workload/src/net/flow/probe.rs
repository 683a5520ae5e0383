//! Small messages there and back: the client asks on a schedule, whether or not answers have come, and the
//! server answers. Latency counts from when a message was due.
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_measure::histogram::Latency;
use keepup_results::NetLatency;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::datagrams::{read_stamp, stamp};
use super::{PATIENCE, Shared, Surroundings, Trouble, Wire, trouble};
use crate::net::spec::Probe;
use crate::net::wire::FlowReport;
use crate::spent::told;

/// How long answers are waited for after the last message.
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

/// A message whole, however long that takes within reason: half of one would spoil all that follow.
fn write_all(mut stream: &TcpStream, mut data: &[u8]) -> std::io::Result<()> {
    let mut waits = 0;
    while !data.is_empty() {
        match stream.write(data) {
            Ok(sent) => data = &data[sent..],
            Err(why) => match trouble(&why) {
                Trouble::Again => {}
                Trouble::Waited if waits < 100 => waits += 1,
                Trouble::Waited => return Err(std::io::Error::other("the other end reads nothing")),
                Trouble::Broken(_) => return Err(why),
            },
        }
    }
    Ok(())
}

/// A datagram; one of no bytes is told from the end of a stream.
fn receive_datagram(socket: &UdpSocket, buffer: &mut [u8]) -> std::io::Result<usize> {
    match socket.recv(buffer)? {
        0 => Err(std::io::ErrorKind::Interrupted.into()),
        bytes => Ok(bytes),
    }
}

/// What the asking side knows.
struct Asker<'a> {
    probe: Probe,
    shared: &'a Shared,
    latency: Latency,
    sent: u64,
    answered: u64,
    /// Bytes of an answer that is not whole yet.
    partial: Vec<u8>,
}

impl Asker<'_> {
    /// Whether a message that was due then lies in the window that counts.
    fn counts(&self, due_ns: u64) -> bool {
        let begin_ns = self.shared.window_begin_ns.load(Ordering::Relaxed);
        let end_ns = self.shared.window_end_ns.load(Ordering::Relaxed);
        begin_ns > 0 && due_ns >= begin_ns && (end_ns == 0 || due_ns < end_ns)
    }

    /// Enters the bytes that came.
    fn came(&mut self, data: &[u8], now_ns: u64) {
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

/// Asks until it is over, then waits for the last answers.
pub(super) fn ask(wire: &Wire, around: &Surroundings) -> FlowReport {
    let Some(probe) = around.spec.probe else { return FlowReport::default() };
    let partial = Vec::with_capacity(2 * probe.bytes + READ_BYTES);
    let (latency, shared) = (Latency::new(), around.shared.as_ref());
    let mut asker = Asker { probe, shared, latency, sent: 0, answered: 0, partial };
    let failure = converse(wire, around, &mut asker).err();
    let latency = NetLatency {
        per_second: probe.per_second,
        bytes: probe.bytes as u64,
        sent: asker.sent,
        answered: asker.answered,
        figures: (asker.answered > 0).then(|| told(&asker.latency)),
    };
    if let Wire::Stream(stream) = wire {
        drop(stream.shutdown(std::net::Shutdown::Write));
    }
    FlowReport { latency: Some(latency), failure, ..FlowReport::default() }
}

/// Bytes taken with one call.
const READ_BYTES: usize = 64 << 10;

fn converse(wire: &Wire, around: &Surroundings, asker: &mut Asker<'_>) -> Result<(), String> {
    let (clock, shared) = (around.clock.as_ref(), around.shared.as_ref());
    let period_ns = 1e9 / asker.probe.per_second;
    let (begin_ns, mut number) = (clock.now_ns(), 0u64);
    let (mut message, mut buffer) = (super::filling(asker.probe.bytes), vec![0; READ_BYTES]);
    let mut over_ns = None;
    loop {
        let now_ns = clock.now_ns();
        if over_ns.is_none() && shared.is_over() {
            over_ns = Some(now_ns);
        }
        let waited = over_ns.map(|over_ns| Duration::from_nanos(now_ns.saturating_sub(over_ns)));
        if shared.is_abandoned() || waited.is_some_and(|t| asker.answered >= asker.sent || t > LAST_ANSWERS) {
            return Ok(());
        }
        let due_ns = begin_ns + (number as f64 * period_ns) as u64;
        if over_ns.is_none() && now_ns >= due_ns {
            stamp(&mut message, 0, number, due_ns);
            number += 1;
            asker.sent += u64::from(asker.counts(due_ns));
            match wire.send(&message).as_ref().map_err(trouble) {
                Ok(()) | Err(Trouble::Waited | Trouble::Again) => {}
                Err(Trouble::Broken(why)) => return Err(why),
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
        match wire.receive(&mut buffer).as_ref().map_err(trouble) {
            Ok(0) => return Err("the other end has closed it".into()),
            Ok(bytes) => asker.came(&buffer[..*bytes], clock.now_ns()),
            Err(Trouble::Waited | Trouble::Again) => {}
            Err(Trouble::Broken(why)) => return Err(why),
        }
    }
}

/// Whether something is there to be read, now or before `patience` is over.
fn is_readable(wire: &Wire, patience: Duration) -> bool {
    let mut wanted = [PollFd::new(wire, PollFlags::IN)];
    let limit = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
    poll(&mut wanted, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Answers until the other end has ended.
pub(super) fn answer(wire: &Wire, around: &Surroundings) -> FlowReport {
    let shared = around.shared.as_ref();
    let mut buffer = vec![0; READ_BYTES];
    let mut report = FlowReport::default();
    while !shared.is_abandoned() {
        let done = match wire.receive(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => wire.send(&buffer[..bytes]),
            Err(why) => Err(why),
        };
        match done.as_ref().map_err(trouble) {
            Ok(()) | Err(Trouble::Again) => {}
            Err(Trouble::Waited) => {
                // Of datagrams nobody says that they end.
                let is_over = shared.nothing_more.load(Ordering::Relaxed);
                if is_over && matches!(wire, Wire::Datagrams(_)) {
                    break;
                }
            }
            Err(Trouble::Broken(why)) => {
                report.failure = Some(why);
                break;
            }
        }
    }
    report
}
