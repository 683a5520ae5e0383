//! The sending end of a drain: one connection for the streams known when it is made, another for those that
//! come later.
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use keepup_recording::crc::crc32;
use keepup_recording::layout::BlockHeader;
use keepup_recording::reader::Events;
use keepup_stream::client::{Client, ClientError, Sent};
use keepup_stream::ledger::Count;
use keepup_stream::wire::{End, EndStream, HEADER_BYTES, Header, Hello, Kind, SentRecording, StreamInfo};

use super::DrainCounters;
use crate::RecorderError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Looks at a full socket, 50 ms apart, before a stop gives up on a block.
const STOP_PATIENCE: u32 = 40;
/// Events handed to the kernel at once.
const BATCH: usize = 256;

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    connection: usize,
    sent: Count,
    next_sequence: u64,
}

/// Connections to one sink.
pub(super) struct Outlet {
    to: SocketAddr,
    recording: Option<SentRecording>,
    connections: Vec<(Client, Vec<u32>)>,
    accounts: BTreeMap<u32, Account>,
}

impl Outlet {
    /// Connects to `to`, and says there that it sends `recording`.
    pub(super) fn new(to: SocketAddr, recording: Option<SentRecording>) -> Self {
        Self { to, recording, connections: Vec::new(), accounts: BTreeMap::new() }
    }

    pub(super) fn sent(&self) -> Count {
        self.accounts.values().fold(Count::default(), |sum, account| sum + account.sent)
    }

    pub(super) fn missing_events(&self) -> u64 {
        self.accounts.values().map(|a| a.next_sequence.saturating_sub(a.sent.events)).sum()
    }

    /// Sends the events of a block; returns their payload bytes.
    pub(super) fn send(
        &mut self,
        info: &StreamInfo,
        header: &BlockHeader,
        mut events: Events<'_>,
        stop: &AtomicBool,
        live: &DrainCounters,
    ) -> Result<u64, RecorderError> {
        self.declare(std::iter::once(info))?;
        let Some(account) = self.accounts.get_mut(&info.id) else { return Ok(0) };
        let Some((client, _)) = self.connections.get_mut(account.connection) else { return Ok(0) };
        loop {
            let batch: Vec<([u8; HEADER_BYTES], &[u8])> = (&mut events)
                .take(BATCH)
                .map(|event| {
                    let head = Header {
                        kind: Kind::Event,
                        stream: info.id,
                        sequence: event.sequence,
                        timestamp_ns: event.timestamp_ns,
                        length: event.payload.len() as u64,
                        crc: crc32(event.payload),
                        a: 0,
                        b: 0,
                    };
                    (head.encode(), event.payload)
                })
                .collect();
            if batch.is_empty() {
                break;
            }
            let mut slices: Vec<IoSlice<'_>> = batch
                .iter()
                .flat_map(|(head, payload)| [IoSlice::new(head), IoSlice::new(payload)])
                .collect();
            let blocked_before_ns = client.blocked_ns();
            // A stop waits for the block under way, unless the other side takes nothing for too long.
            let mut patience = STOP_PATIENCE;
            let mut go_on = || {
                patience -= u32::from(stop.load(Ordering::Acquire));
                if patience == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let outcome = client.send(&mut &mut slices[..], &mut go_on)?;
            live.blocked_ns.fetch_add(client.blocked_ns() - blocked_before_ns, Ordering::Relaxed);
            if outcome == Sent::Stopped {
                return Err(RecorderError::Config {
                    what: "the drain was stopped in the middle of a block".into(),
                });
            }
        }
        account.sent += Count { events: u64::from(header.event_count), bytes: header.payload_bytes };
        account.next_sequence = header.first_sequence + u64::from(header.event_count);
        Ok(header.payload_bytes)
    }

    /// Connects for those of `streams` that have no connection yet, if any.
    pub(super) fn declare<'a>(
        &mut self,
        streams: impl Iterator<Item = &'a StreamInfo>,
    ) -> Result<(), ClientError> {
        let is_new = |info: &&StreamInfo| !self.accounts.contains_key(&info.id);
        let new: BTreeMap<u32, StreamInfo> =
            streams.filter(is_new).map(|info| (info.id, info.clone())).collect();
        if new.is_empty() {
            return Ok(());
        }
        let ids: Vec<u32> = new.keys().copied().collect();
        let client = concat!("keepup drain ", env!("CARGO_PKG_VERSION"));
        let hello =
            Hello { recording: self.recording.clone(), ..Hello::new(client, new.into_values().collect()) };
        let (client, _) = Client::connect(&self.to, &hello, CONNECT_TIMEOUT)?;
        if let Some((id, acked)) = ids.iter().zip(client.acks()).find(|(_, acked)| acked.received_next > 0) {
            // Its acknowledgements would be taken for those of events that were not sent.
            return Err(ClientError::Refused {
                error: format!("{} has {} events of a stream {id} already", self.to, acked.received_next),
                hint: "drain to a sink that begins anew: keepup sink --to DIR".to_owned(),
            });
        }
        let connection = self.connections.len();
        self.accounts.extend(ids.iter().map(|id| (*id, Account { connection, ..Account::default() })));
        self.connections.push((client, ids));
        Ok(())
    }

    /// Takes in acknowledgements, so that the other side can always send them.
    pub(super) fn hear(&mut self) -> Result<(), ClientError> {
        self.connections.iter_mut().try_for_each(|(client, _)| client.poll_acks())
    }

    /// Up to which event each stream is durable on the other side, as far as it was heard; of what was sent.
    pub(super) fn durable_ends(&self) -> BTreeMap<u32, u64> {
        let acked = |(client, streams): &(Client, Vec<u32>)| {
            let ends = client.acks().iter().map(|acked| acked.durable_next);
            streams.iter().copied().zip(ends).collect::<Vec<_>>()
        };
        let sent = |id: &u32| self.accounts.get(id).map_or(0, |account| account.next_sequence);
        self.connections.iter().flat_map(acked).map(|(id, end)| (id, end.min(sent(&id)))).collect()
    }

    /// Up to which event each stream was sent.
    pub(super) fn sent_ends(&self) -> BTreeMap<u32, u64> {
        self.accounts.iter().map(|(&id, account)| (id, account.next_sequence)).collect()
    }

    /// Says end on every connection; returns what is durable on the other side.
    pub(super) fn finish(self, timeout: Duration) -> Result<Count, ClientError> {
        let mut durable = Count::default();
        for (client, streams) in self.connections {
            let last = |id: &u32| {
                let account = self.accounts.get(id).copied().unwrap_or_default();
                EndStream {
                    id: *id,
                    events: account.sent.events,
                    bytes: account.sent.bytes,
                    lost_events: account.next_sequence.saturating_sub(account.sent.events),
                    lost_bytes: 0,
                    next_sequence: account.next_sequence,
                }
            };
            let bye = client.finish(&End { streams: streams.iter().map(last).collect() }, timeout)?;
            for stream in &bye.streams {
                durable += Count { events: stream.durable_events, bytes: stream.durable_bytes };
            }
        }
        Ok(durable)
    }
}
