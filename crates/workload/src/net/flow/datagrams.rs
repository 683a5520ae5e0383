//! Numbered datagrams: sent on an open-loop schedule and counted individually.
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_sys::datagram::{
    BATCH_MAX, Batch, DATAGRAM_BYTES_MAX, DatagramReceiver, Received, RingReceiver, set_join,
    set_report_drops, set_segment_bytes,
};
use keepup_sys::socket::drops;
use rustix::net::sockopt;

use super::{CallFailure, Flow, FlowContext, classify_failure, incompressible_bytes};
use crate::net::sequence::Sequence;
use crate::net::spec::{HEADER_BYTES, NetSpec, ReceiveBy, Role, SendBy};
use crate::net::wire::{Datagrams, FLOW_MAGIC, FlowReport, Sent};

const MAGIC: u32 = u32::from_le_bytes(*b"KUdg");
/// Backlog after which a sender drops overdue datagrams, as a detector would.
const CATCH_UP: Duration = Duration::from_millis(20);
/// Minimum wait of a sender.
const PAUSE_MIN: Duration = Duration::from_micros(100);
/// Coalesced messages received per call.
const JOINED: usize = 16;
/// Silence after the sender's end after which the flow is complete.
const QUIET: Duration = Duration::from_millis(200);

/// Writes the header of a datagram.
pub(super) fn stamp(datagram: &mut [u8], flow: u32, number: u64, due_ns: u64) {
    datagram[..4].copy_from_slice(&MAGIC.to_le_bytes());
    datagram[4..8].copy_from_slice(&flow.to_le_bytes());
    datagram[8..16].copy_from_slice(&number.to_le_bytes());
    datagram[16..HEADER_BYTES].copy_from_slice(&due_ns.to_le_bytes());
}

/// Flow, sequence number and due time of a datagram; none for foreign datagrams.
pub(super) fn read_stamp(datagram: &[u8]) -> Option<(u32, u64, u64)> {
    let (magic, rest) = datagram.split_first_chunk::<4>()?;
    let (flow, rest) = rest.split_first_chunk::<4>()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let due_ns = rest.first_chunk::<8>()?;
    let is_ours = u32::from_le_bytes(*magic) == MAGIC;
    is_ours.then(|| (u32::from_le_bytes(*flow), u64::from_le_bytes(*number), u64::from_le_bytes(*due_ns)))
}

/// Applies the test's socket options.
pub(super) fn prepare(socket: &UdpSocket, flow: &Flow, spec: &NetSpec) -> std::io::Result<()> {
    let is_ipv6 = socket.local_addr()?.is_ipv6();
    if flow.role == Role::Probe {
        return Ok(());
    }
    if flow.sends() {
        // Without this option drops still appear in the kernel's own counters.
        drop(set_report_drops(socket.as_fd(), is_ipv6));
        if spec.send_by == SendBy::Segments {
            set_segment_bytes(socket.as_fd(), spec.message_bytes)?;
        }
    } else {
        // Unsupported options fail here, before anything is sent.
        receiver(spec)?;
        if spec.receive_by == ReceiveBy::Joined {
            set_join(socket.as_fd(), true)?;
        }
    }
    Ok(())
}

/// Creates the receive backend.
fn receiver(spec: &NetSpec) -> std::io::Result<Box<dyn DatagramReceiver>> {
    let bytes = spec.message_bytes;
    Ok(match spec.receive_by {
        ReceiveBy::Plain => Box::new(Batch::new(1, bytes)),
        ReceiveBy::Batch => Box::new(Batch::new(BATCH_MAX, bytes)),
        ReceiveBy::Joined => Box::new(Batch::new(JOINED, DATAGRAM_BYTES_MAX + 28)),
        ReceiveBy::Ring => Box::new(RingReceiver::new(bytes, super::PATIENCE).map_err(no_ring)?),
    })
}

fn no_ring(why: std::io::Error) -> std::io::Error {
    let needs = "it needs Linux 6.0 and io_uring allowed (sysctl kernel.io_uring_disabled); any other way of";
    std::io::Error::new(why.kind(), format!("receive over io_uring: {why}; {needs} receiving does without"))
}

/// Send schedule of a flow: how many datagrams are due and how many were dropped at the source.
struct Schedule {
    per_second: Option<f64>,
    begin_ns: u64,
    /// Sent, refused or dropped.
    handled: u64,
}

impl Schedule {
    /// Number of datagrams to send now, at most `most`; overdue ones are counted as handled.
    fn now(&mut self, now_ns: u64, most: u64) -> u64 {
        let Some(per_second) = self.per_second else { return most };
        let elapsed_s = now_ns.saturating_sub(self.begin_ns) as f64 / 1e9;
        let due = (elapsed_s * per_second) as u64 + 1;
        let late_most = ((CATCH_UP.as_secs_f64() * per_second) as u64).max(1);
        self.handled = self.handled.max(due.saturating_sub(late_most));
        due.saturating_sub(self.handled).min(most)
    }

    /// Time until the next datagram is due, with a minimum: waking for each datagram costs more
    /// than sending several.
    fn pause(&self, now_ns: u64) -> Duration {
        let due_ns = self.begin_ns + (self.handled as f64 / self.per_second.unwrap_or(1e9) * 1e9) as u64;
        Duration::from_nanos(due_ns.saturating_sub(now_ns)).clamp(PAUSE_MIN, super::PATIENCE)
    }
}

/// Sends until stopped.
pub(super) fn send(socket: &UdpSocket, number: u32, flow_context: &FlowContext) -> FlowReport {
    let (spec, shared, clock) = (&flow_context.spec, &flow_context.shared, flow_context.clock.as_ref());
    let bytes = spec.message_bytes;
    let per_train = spec.segments();
    let trains = if spec.send_by == SendBy::Plain { 1 } else { BATCH_MAX };
    let mut batch = Batch::new(trains, per_train * bytes);
    let data = incompressible_bytes(per_train * bytes);
    (0..trains).for_each(|train| batch.message_mut(train).copy_from_slice(&data));
    let mut lengths = [0; BATCH_MAX];
    let per_second = spec.rate.map(|rate| rate / bytes as f64);
    let mut schedule = Schedule { per_second, begin_ns: clock.now_ns(), handled: 0 };
    let (mut sent, mut refused, mut failure) = (0, 0, None);
    while !shared.is_over() {
        let now_ns = clock.now_ns();
        let count = schedule.now(now_ns, (trains * per_train) as u64) as usize;
        if count == 0 {
            std::thread::sleep(schedule.pause(now_ns));
            continue;
        }
        let used = count.div_ceil(per_train);
        for (train, length) in lengths.iter_mut().enumerate().take(used) {
            let part = per_train.min(count - train * per_train);
            *length = part * bytes;
            let datagrams = batch.message_mut(train)[..*length].chunks_mut(bytes);
            for (index, datagram) in datagrams.enumerate() {
                stamp(datagram, number, sent + (train * per_train + index) as u64, now_ns);
            }
        }
        match batch.send(socket.as_fd(), &lengths[..used]) {
            Ok(taken) => {
                let datagrams: usize = lengths[..taken].iter().map(|length| length / bytes).saturating_sum();
                sent += datagrams as u64;
                schedule.handled += datagrams as u64;
                shared.moved(datagrams * bytes, datagrams as u64);
            }
            // The local send queue was full: the datagram is lost before it was sent.
            Err(why) if why.raw_os_error() == Some(rustix::io::Errno::NOBUFS.raw_os_error()) => {
                let datagrams = (lengths[0] / bytes) as u64;
                schedule.handled += datagrams;
                refused += datagrams;
            }
            Err(why) => match classify_failure(&why) {
                CallFailure::Waited | CallFailure::Again => {}
                CallFailure::Broken(why) => {
                    failure = Some(why);
                    break;
                }
            },
        }
    }
    let due = schedule.handled.max(sent);
    FlowReport { sent: Some(Sent { number, due, sent, refused }), failure, ..FlowReport::default() }
}

/// Counters of a receiving flow.
struct Account {
    flow: u32,
    /// Expected datagram size.
    bytes: usize,
    sequence: Sequence,
    counts: Datagrams,
}

impl Account {
    /// Counts one message; returns its datagrams and bytes.
    fn enter(&mut self, message: Received<'_>) -> (u64, usize) {
        if message.is_truncated {
            self.counts.truncated += 1;
            return (0, 0);
        }
        let (mut count, mut bytes) = (0, 0);
        self.counts.foreign += u64::from(message.data.is_empty());
        for datagram in message.data.chunks(message.segment_bytes) {
            match read_stamp(datagram) {
                Some((flow, number, _)) if flow == self.flow && datagram.len() == self.bytes => {
                    self.sequence.came(number);
                }
                // A port announcement that arrived after the port was open.
                _ if datagram.starts_with(&FLOW_MAGIC) => continue,
                _ => {
                    self.counts.foreign += 1;
                    continue;
                }
            }
            count += 1;
            bytes += datagram.len();
        }
        self.counts.longest_train = self.counts.longest_train.max(count);
        (count, bytes)
    }
}

/// Receives until the sender has finished and the socket is empty.
pub(super) fn receive(socket: &UdpSocket, number: u32, flow_context: &FlowContext) -> FlowReport {
    let (sequence, counts) = (Sequence::new(), Datagrams::default());
    let mut account = Account { flow: number, bytes: flow_context.spec.message_bytes, sequence, counts };
    let failure = receiver(&flow_context.spec)
        .map_err(|why| why.to_string())
        .and_then(|mut receiver| take(socket, receiver.as_mut(), &mut account, flow_context))
        .err();
    let sequence = &account.sequence;
    let received = Datagrams {
        unique: sequence.unique,
        duplicates: sequence.duplicates,
        reordered: sequence.reordered,
        too_late: sequence.too_late,
        // Counted from socket creation: the sender may start before this thread.
        dropped: drops(socket.as_fd()).unwrap_or(0).into(),
        ..account.counts
    };
    FlowReport {
        received: Some(received),
        receive_buffer_bytes: sockopt::socket_recv_buffer_size(socket).ok().map(|bytes| bytes as u64),
        failure,
        ..FlowReport::default()
    }
}

/// Receives and counts until the flow is complete.
fn take(
    socket: &UdpSocket,
    receiver: &mut dyn DatagramReceiver,
    account: &mut Account,
    flow_context: &FlowContext,
) -> Result<(), String> {
    let (shared, clock) = (&flow_context.shared, flow_context.clock.as_ref());
    let mut taken_ns = clock.now_ns();
    while !shared.is_abandoned() {
        match receiver.receive(socket.as_fd()) {
            Ok(messages) => {
                let now_ns = clock.now_ns();
                if messages == receiver.most() && account.sequence.unique > 0 {
                    // More data was queued: the time since the last call is this end's delay.
                    let pause_ns = now_ns.saturating_sub(taken_ns);
                    account.counts.longest_pause_ns = account.counts.longest_pause_ns.max(pause_ns);
                }
                taken_ns = now_ns;
                let (mut datagrams, mut moved) = (0, 0);
                for message in (0..messages).map_while(|index| receiver.received(index)) {
                    let (count, bytes) = account.enter(message);
                    datagrams += count;
                    moved += bytes;
                }
                shared.moved(moved, datagrams);
            }
            Err(why) => match classify_failure(&why) {
                CallFailure::Waited => {
                    let quiet = Duration::from_nanos(clock.now_ns().saturating_sub(taken_ns));
                    if shared.sender_finished.load(std::sync::atomic::Ordering::Relaxed) && quiet > QUIET {
                        break;
                    }
                }
                CallFailure::Again => {}
                CallFailure::Broken(why) => return Err(why),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "datagrams_tests.rs"]
mod tests;
