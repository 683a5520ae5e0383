//! Packets over UDP, as backends of telescopes and FPGA boards send them: each event is one datagram, and
//! nobody waits or answers.
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::time::Duration;

use keepup_measure::sum::Sums;
use keepup_peer::Endpoint;

use super::super::StreamReport;
use super::super::event::Event;
use super::super::plan::{PACKET_BYTES_MAX, Protocol, SourcePlan};
use super::datagrams::{Datagrams, Train};
use super::{Framing, Link};
use crate::client::{ClientError, Sent};
use crate::wire::Bye;

/// Bytes of a VDIF header with extended data.
const VDIF_HEADER_BYTES: usize = 32;

/// Header in front of each payload.
#[derive(Clone, Copy, Debug)]
enum Format {
    /// The sequence number, 64 bits, big endian.
    Counter,
    /// A VDIF header, which is part of the event.
    Vdif { frames_per_second: u64 },
}

/// A socket that sends packets.
pub(super) struct Packets {
    datagrams: Datagrams,
    format: Format,
    streams: usize,
}

impl Packets {
    /// Opens a socket towards `to`.
    pub(super) fn open(plan: &SourcePlan, connection: u32, to: &Endpoint) -> Result<Self, ClientError> {
        let format = match plan.protocol {
            Protocol::Vdif { frames_per_second } => Format::Vdif { frames_per_second },
            _ => Format::Counter,
        };
        let streams = (connection..plan.streams).step_by(plan.connections.max(1) as usize).count();
        Ok(Self { datagrams: Datagrams::open(to)?, format, streams })
    }

    /// Number of slices of the next train: events of the same length, as many as the kernel sends with one
    /// call.
    fn train(&self, slices: &[IoSlice<'_>]) -> (usize, usize) {
        let length = |event: &[IoSlice<'_>]| event.iter().map(|slice| slice.len()).saturating_sum::<usize>();
        let first = slices.chunks(2).next().map_or(0, length);
        let most = self.datagrams.datagrams_max(first);
        let same = slices.chunks(2).take(most).take_while(|event| length(event) == first).count();
        (2 * same, first)
    }
}

impl Framing for Packets {
    fn has_checksum(&self) -> bool {
        false
    }

    fn bytes_in_header(&self) -> u64 {
        match self.format {
            Format::Counter => 0,
            Format::Vdif { .. } => VDIF_HEADER_BYTES as u64,
        }
    }

    fn put_header(&self, event: &Event, timestamp_ns: u64, _crc: u32, out: &mut Vec<u8>) {
        match self.format {
            Format::Counter => out.extend_from_slice(&event.sequence.to_be_bytes()),
            Format::Vdif { frames_per_second } => {
                let second_of_first = (timestamp_ns.saturating_sub(event.due_ns)) / 1_000_000_000;
                put_vdif(event, second_of_first, frames_per_second, out);
            }
        }
    }
}

impl Link for Packets {
    fn event_bytes_max(&self) -> u64 {
        PACKET_BYTES_MAX
    }

    fn first_sequences(&self) -> Vec<u64> {
        vec![0; self.streams]
    }

    fn send(
        &mut self,
        slices: &mut &mut [IoSlice<'_>],
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Sent, ClientError> {
        while !slices.is_empty() {
            let (count, bytes) = self.train(slices);
            match self.datagrams.send(&slices[..count], bytes, on_blocked)? {
                Train::Sent => *slices = &mut std::mem::take(slices)[count..],
                Train::Stopped => return Ok(Sent::Stopped),
                Train::TooLong => {}
            }
        }
        Ok(Sent::All)
    }

    fn poll(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    fn blocked_ns(&self) -> (u64, u64) {
        self.datagrams.blocked_ns()
    }

    fn durable_events(&self, _streams: &[StreamReport]) -> u64 {
        0
    }

    fn finish(self: Box<Self>, _streams: &[StreamReport], _timeout: Duration) -> Result<Bye, ClientError> {
        Ok(Bye { streams: Vec::new() })
    }

    fn timed_out(&self, action: &'static str, waited: Duration) -> ClientError {
        self.datagrams.timed_out(action, waited)
    }
}

/// Appends a VDIF header (release 1.1.1) without a sample rate: 2-bit real samples of one channel. The frames
/// of a thread are numbered without gaps from `second`, s since the Unix epoch.
fn put_vdif(event: &Event, second: u64, frames_per_second: u64, out: &mut Vec<u8>) {
    // 2020-01-01, the start of reference epoch 40.
    const EPOCH: (u32, u64) = (40, 1_577_836_800);
    let seconds = (second.saturating_sub(EPOCH.1) + event.sequence / frames_per_second) & 0x3FFF_FFFF;
    let in_second = (event.sequence % frames_per_second) as u32;
    let eighths = (event.bytes / 8) as u32 & 0xFF_FFFF;
    let thread = (event.stream & 0x3FF) << 16;
    let station = u32::from(u16::from_be_bytes(*b"KU"));
    let words = [
        seconds as u32,
        EPOCH.0 << 24 | in_second,
        1 << 29 | eighths,
        1 << 26 | thread | station,
        0,
        0,
        0,
        0,
    ];
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}
