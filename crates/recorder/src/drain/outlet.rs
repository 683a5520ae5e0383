//! Sending side of a drain: one connection for the streams known when it is made, another one for
//! streams that come later.
//!
//! A broken connection is re-established under the same resume identity and continues from the
//! other side's position. Invariant: what counts as durable elsewhere never passes an event that
//! the other side lost.
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_peer::Endpoint;
use keepup_recording::crc::crc32;
use keepup_recording::id::Id;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::{Event, Events};
use keepup_stream::client::{Acked, Client, ClientError, Sent};
use keepup_stream::ledger::{Count, Gap, LossCause};
use keepup_stream::rejected::Rejected;
use keepup_stream::wire::{
    Continued, ControlMessage, End, EndStream, FrameKind, HEADER_BYTES, Header, Hello, MISSING_GAPS_MAX,
    Missing, SentRecording, StreamInfo,
};

use super::DrainCounters;
use super::delivery::{Delivery, Resume};
use crate::RecorderError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Polls of a full socket, 50 ms apart, before a stop abandons a block.
const STOP_POLLS: u32 = 40;
/// Events handed to the kernel in one call.
const BATCH: usize = 256;

/// A sent block.
#[derive(Clone, Copy, Debug)]
struct SentBlock {
    number: u64,
    end_sequence: u64,
}

/// What was sent of one stream.
#[derive(Debug, Default)]
struct Account {
    connection: usize,
    /// Over the present connection.
    sent: Count,
    /// First event of the present connection.
    start_sequence: u64,
    next_sequence: u64,
    /// Over all connections, each event once.
    total: Count,
    /// One past the last event of `total`.
    total_end: u64,
    /// Blocks that are not yet durable on the other side.
    unacked: VecDeque<SentBlock>,
    acked: Acked,
    /// Events that the other side had lost when the first connection was made.
    lost_before: u64,
    /// Durable end when the other side first lost an event.
    limit: Option<u64>,
}

impl Account {
    fn lost_events(&self) -> u64 {
        self.acked.lost_events.saturating_sub(self.lost_before)
    }

    /// Applies an acknowledgement.
    fn apply_ack(&mut self, acked: Acked) {
        if acked.lost_events > self.acked.lost_events {
            self.limit.get_or_insert(self.acked.durable_next);
        }
        self.acked = acked;
        while self.unacked.front().is_some_and(|block| block.end_sequence <= acked.durable_next) {
            self.unacked.pop_front();
        }
    }

    /// Events that are durable on the other side.
    fn durable_events(&self) -> u64 {
        self.total.events.saturating_sub(self.total_end.saturating_sub(self.durable_end()))
    }

    fn durable_end(&self) -> u64 {
        let end = self.acked.durable_next.min(self.next_sequence);
        self.limit.map_or(end, |limit| limit.min(end))
    }
}

/// One connection, with what is sent over it.
struct Link {
    /// `None` while the connection is broken.
    client: Option<Client>,
    streams: Vec<StreamInfo>,
    /// Streams that do not start at 0.
    continued: Vec<Continued>,
    /// The other side's recording.
    recording: String,
}

/// Connections to one sink.
pub(super) struct Outlet {
    to: Endpoint,
    /// Template of every hello, without streams.
    hello: Hello,
    links: Vec<Link>,
    accounts: BTreeMap<u32, Account>,
    /// Positions of re-established connections, until all are.
    resume: Resume,
}

impl Outlet {
    /// Creates an outlet without connections. `begin_unix_ns` distinguishes drains of the same
    /// recording; `sent` describes the recording to the other side.
    pub(super) fn new(to: Endpoint, id: Id, begin_unix_ns: u64, sent: Option<SentRecording>) -> Self {
        let hello = Hello {
            resume: Some(format!("keepup drain of {id} since {begin_unix_ns}")),
            recording: sent,
            ..Hello::new(concat!("keepup drain ", env!("CARGO_PKG_VERSION")), Vec::new())
        };
        Self { to, hello, links: Vec::new(), accounts: BTreeMap::new(), resume: Resume::new() }
    }

    /// Everything sent, each event once.
    pub(super) fn sent(&self) -> Count {
        self.accounts.values().fold(Count::default(), |sum, account| sum + account.total)
    }

    /// What the other side received and lost, by stream: number of events, and from which event
    /// on.
    pub(super) fn lost(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let lost = |(&id, account): (&u32, &Account)| Some((id, account.lost_events(), account.limit?));
        self.accounts.iter().filter_map(lost)
    }

    /// Sends the losses and events of a delivery that the other side lacks; returns their payload bytes.
    pub(super) fn send(
        &mut self,
        delivery: Delivery<'_>,
        stop: &AtomicBool,
        live: &DrainCounters,
    ) -> Result<u64, RecorderError> {
        let Delivery { info, start, gaps, end, block } = delivery;
        self.declare(std::iter::once((info, start)))?;
        let Some(account) = self.accounts.get_mut(&info.id) else { return Ok(0) };
        let Some(link) = self.links.get_mut(account.connection) else { return Ok(0) };
        let Some(client) = &mut link.client else { return Err(closed(&self.to).into()) };
        let losses_end = block.as_ref().map_or(end, |(header, _)| header.first_sequence);
        let missing = missing(info.id, account.next_sequence..losses_end, gaps);
        let sent = send_missing(client, missing, stop, live);
        account.next_sequence = account.next_sequence.max(losses_end);
        let sent = match (sent, block) {
            (Ok(()), Some((header, events))) => send_block(client, account, (header, events), stop, live),
            (sent, _) => sent.map(|()| Count::default()),
        };
        match sent {
            Ok(sent) => Ok(sent.bytes),
            Err(error) => {
                if matches!(error, RecorderError::Client(_)) {
                    link.client = None;
                }
                Err(error)
            }
        }
    }

    /// Sends the account of rejected data, with the counts so far. There is no side to send it to if the
    /// recording has no streams.
    pub(super) fn send_rejected(
        &mut self,
        rejected: Vec<Rejected>,
        stop: &AtomicBool,
        live: &DrainCounters,
    ) -> Result<(), RecorderError> {
        let Some(link) = self.links.first_mut().filter(|_| !rejected.is_empty()) else { return Ok(()) };
        let Some(client) = &mut link.client else { return Err(closed(&self.to).into()) };
        let frame = Missing { gaps: Vec::new(), rejected }.to_frame().map_err(ClientError::from)?;
        let sent = send_slices(client, &mut [IoSlice::new(&frame)], stop, live);
        if matches!(sent, Err(RecorderError::Client(_))) {
            link.client = None;
        }
        sent
    }

    /// Connects for those of `streams` that have no connection yet, if any.
    pub(super) fn declare<'a>(
        &mut self,
        streams: impl Iterator<Item = (&'a StreamInfo, u64)>,
    ) -> Result<(), ClientError> {
        let new = streams.filter(|(info, _)| !self.accounts.contains_key(&info.id));
        let new: BTreeMap<u32, _> = new.map(|(info, start)| (info.id, (info, start))).collect();
        if new.is_empty() {
            return Ok(());
        }
        let starts = new.iter().map(|(&id, &(_, next_sequence))| Continued { id, next_sequence });
        let mut link = Link {
            client: None,
            continued: starts.filter(|stream| stream.next_sequence > 0).collect(),
            streams: new.values().map(|&(info, _)| info.clone()).collect(),
            recording: String::new(),
        };
        let client = connect(&self.to, &self.hello, &mut link)?;
        let has_others = |(info, ack): &(&StreamInfo, &Acked)| {
            new.get(&info.id).is_some_and(|(_, start)| ack.received_next > *start)
        };
        if let Some((info, acked)) = link.streams.iter().zip(client.acks()).find(has_others) {
            // Its acknowledgements would be mistaken for those of events that were not sent.
            return Err(ClientError::Refused {
                error: format!(
                    "{} has {} events of a stream {} already",
                    self.to, acked.received_next, info.id
                ),
                hint: "drain to a new sink: keepup sink --to DIR".to_owned(),
            });
        }
        let connection = self.links.len();
        for (info, &acked) in link.streams.iter().zip(client.acks()) {
            let (next, lost_before) = (acked.received_next, acked.lost_events);
            let account = Account { connection, acked, lost_before, ..Account::default() };
            let account = Account { start_sequence: next, next_sequence: next, ..account };
            self.accounts.insert(info.id, account);
        }
        self.links.push(Link { client: Some(client), ..link });
        Ok(())
    }

    /// Whether a connection was ever made.
    pub(super) fn is_connected(&self) -> bool {
        !self.links.is_empty()
    }

    /// Re-establishes broken connections. Returns the positions from which their streams
    /// continue.
    ///
    /// # Errors
    /// The other side cannot be reached, refuses, or lacks what it acknowledged.
    pub(super) fn reconnect(&mut self) -> Result<Resume, ClientError> {
        for link in self.links.iter_mut().filter(|link| link.client.is_none()) {
            let before = link.recording.clone();
            let client = connect(&self.to, &self.hello, link)?;
            for (info, &acked) in link.streams.iter().zip(client.acks()) {
                let Some(account) = self.accounts.get_mut(&info.id) else { continue };
                if link.recording != before || acked.received_next < account.acked.durable_next {
                    return Err(ClientError::Refused {
                        error: format!("{} has lost what it acknowledged of stream {}", self.to, info.id),
                        hint: "drain the whole recording to a new sink".to_owned(),
                    });
                }
                account.apply_ack(acked);
                let next = acked.received_next;
                let block = account.unacked.iter().position(|block| block.end_sequence > next);
                let number = block.map(|at| account.unacked[at].number);
                account.unacked.truncate(block.unwrap_or(account.unacked.len()));
                (account.start_sequence, account.next_sequence) = (next, next);
                account.sent = Count::default();
                self.resume.insert(info.id, (number, next));
            }
            link.client = Some(client);
        }
        Ok(std::mem::take(&mut self.resume))
    }

    /// Reads acknowledgements, so that the other side can always send them.
    pub(super) fn poll_acks(&mut self) -> Result<(), ClientError> {
        for link in &mut self.links {
            let Some(client) = &mut link.client else { return Err(closed(&self.to)) };
            let polled = client.poll_acks();
            for (info, &acked) in link.streams.iter().zip(client.acks()) {
                self.accounts.entry(info.id).and_modify(|account| account.apply_ack(acked));
            }
            if let Err(error) = polled {
                link.client = None;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Events that the other side received, over all streams: measures progress.
    pub(super) fn received(&self) -> u64 {
        let next = self.accounts.values().map(|account| account.acked.received_next);
        next.fold(0, u64::saturating_add)
    }

    /// One past the last acknowledged durable event, by stream that was sent.
    pub(super) fn durable_ends(&self) -> BTreeMap<u32, u64> {
        self.accounts.iter().map(|(&id, account)| (id, account.durable_end())).collect()
    }

    /// Events that are durable on the other side.
    pub(super) fn durable_events(&self) -> u64 {
        self.accounts.values().map(Account::durable_events).fold(0, u64::saturating_add)
    }

    /// Whether the other side has acknowledged everything that was sent.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.accounts.values().all(|account| account.acked.durable_next >= account.next_sequence)
    }

    /// Events and bytes that are durable on the other side once everything is acknowledged.
    /// Includes the bytes of events that it lost, since those are unknown.
    pub(super) fn durable(&self) -> Count {
        let lost = self.accounts.values().map(Account::lost_events).fold(0, u64::saturating_add);
        self.sent() - Count { events: lost, bytes: 0 }
    }

    /// Sends end on every connection and waits for the confirmations.
    pub(super) fn finish(self, timeout: Duration) -> Result<(), ClientError> {
        for link in self.links {
            let last = |info: &StreamInfo| {
                let account = self.accounts.get(&info.id)?;
                let numbers = account.next_sequence - account.start_sequence;
                Some(EndStream {
                    id: info.id,
                    events: account.sent.events,
                    bytes: account.sent.bytes,
                    lost_events: numbers.saturating_sub(account.sent.events),
                    lost_bytes: 0,
                    next_sequence: account.next_sequence,
                })
            };
            let Some(client) = link.client else { return Err(closed(&self.to)) };
            client.finish(&End { streams: link.streams.iter().filter_map(last).collect() }, timeout)?;
        }
        Ok(())
    }
}

/// Error for a connection that is already known to be broken.
fn closed(to: &Endpoint) -> ClientError {
    ClientError::Closed { action: "send to", addr: to.address() }
}

/// Connects for the streams of a link.
fn connect(to: &Endpoint, hello: &Hello, link: &mut Link) -> Result<Client, ClientError> {
    let (streams, continued) = (link.streams.clone(), link.continued.clone());
    let hello = Hello { streams, continued, ..hello.clone() };
    let (client, welcome) = Client::connect(to, &hello, CONNECT_TIMEOUT)?;
    link.recording = welcome.recording;
    Ok(client)
}

fn head(stream: u32, event: &Event<'_>) -> [u8; HEADER_BYTES] {
    let head = Header {
        kind: FrameKind::Event,
        stream,
        sequence: event.sequence,
        timestamp_ns: event.timestamp_ns,
        length: event.payload.len() as u64,
        crc: crc32(event.payload),
        a: 0,
        b: 0,
    };
    head.encode()
}

/// Losses of a stream among `numbers`: those that the recording lists, and as lost at the source what the
/// recording has and cannot be read.
fn missing(stream: u32, numbers: Range<u64>, listed: &[Gap]) -> Vec<Gap> {
    let (mut missing, mut at) = (Vec::new(), numbers.start);
    let mut enter = |first_sequence: u64, end: u64, cause: LossCause| {
        let events = end.saturating_sub(first_sequence);
        if events > 0 {
            missing.push(Gap { stream, first_sequence, events, cause });
        }
    };
    for gap in listed {
        let first = gap.first_sequence.clamp(at, numbers.end.max(at));
        let end = gap.first_sequence.saturating_add(gap.events).clamp(first, numbers.end.max(first));
        enter(at, first, LossCause::Source);
        enter(first, end, gap.cause);
        at = end;
    }
    enter(at, numbers.end, LossCause::Source);
    missing
}

/// Declares losses.
fn send_missing(
    client: &mut Client,
    missing: Vec<Gap>,
    stop: &AtomicBool,
    live: &DrainCounters,
) -> Result<(), RecorderError> {
    for gaps in missing.chunks(MISSING_GAPS_MAX) {
        let missing = Missing { gaps: gaps.to_vec(), rejected: Vec::new() };
        let frame = missing.to_frame().map_err(ClientError::from)?;
        send_slices(client, &mut [IoSlice::new(&frame)], stop, live)?;
    }
    Ok(())
}

/// Sends the events of a block that the other side lacks, and enters them.
fn send_block(
    client: &mut Client,
    account: &mut Account,
    (header, events): (&BlockHeader, Events<'_>),
    stop: &AtomicBool,
    live: &DrainCounters,
) -> Result<Count, RecorderError> {
    let (mut total, mut sent) = (Count::default(), Count::default());
    let mut wanted = events.filter(|event| {
        let one = Count::one(event.payload.len() as u64);
        total += if event.sequence >= account.total_end { one } else { Count::default() };
        let is_wanted = event.sequence >= account.next_sequence;
        sent += if is_wanted { one } else { Count::default() };
        is_wanted
    });
    loop {
        let batch: Vec<_> =
            wanted.by_ref().take(BATCH).map(|event| (head(header.stream, &event), event.payload)).collect();
        if batch.is_empty() {
            break;
        }
        let mut slices: Vec<IoSlice<'_>> =
            batch.iter().flat_map(|(head, payload)| [IoSlice::new(head), IoSlice::new(payload)]).collect();
        send_slices(client, &mut slices, stop, live)?;
    }
    drop(wanted);
    let end_sequence = header.first_sequence.saturating_add(header.event_count.into());
    account.total += total;
    account.total_end = account.total_end.max(end_sequence);
    account.sent += sent;
    account.next_sequence = account.next_sequence.max(end_sequence);
    account.unacked.push_back(SentBlock { number: header.stream_block, end_sequence });
    Ok(sent)
}

/// Sends whole frames. A stop waits for them, unless the other side accepts nothing for too long.
fn send_slices(
    client: &mut Client,
    slices: &mut [IoSlice<'_>],
    stop: &AtomicBool,
    live: &DrainCounters,
) -> Result<(), RecorderError> {
    let blocked_before_ns = client.blocked_ns();
    let mut polls_left = STOP_POLLS;
    let mut go_on = || {
        polls_left -= u32::from(stop.load(Ordering::Acquire));
        if polls_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let outcome = client.send(&mut &mut slices[..], &mut go_on);
    live.blocked_ns.fetch_add(client.blocked_ns() - blocked_before_ns, Ordering::Relaxed);
    match outcome? {
        Sent::All => Ok(()),
        Sent::Stopped => {
            Err(RecorderError::Config { what: "the drain was stopped in the middle of a frame".into() })
        }
    }
}
