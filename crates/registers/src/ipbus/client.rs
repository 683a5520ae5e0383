//! The client: calls that return when all their transactions were done, or with what went wrong.
//!
//! Packets have numbers, and several are under way. When no answer comes in time the target is asked for its
//! status, which tells whether requests or replies were lost; what was lost is sent, or asked for, again.
//! The target does nothing twice: it takes only the packet with the next number.
mod patience;
mod transfer;
mod window;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::datagram::{Batch, DATAGRAM_BYTES_MAX};

use self::patience::Patience;
use self::transfer::{Data, Transfer};
use self::window::Link;
use super::error::IpbusError;
use super::packet::{
    ByteOrder, IP_UDP_BYTES, STATUS_BYTES, Status, TRANSACTION_WORDS_MAX, TransactionKind, WORD_BYTES,
};
use super::socket;

/// Packets under way at most, whatever the target could keep: the low four bits of their numbers tell them
/// apart.
pub const WINDOW_MAX: usize = 16;
/// Smallest MTU that a target can work with: room for a status.
const MTU_BYTES_MIN: usize = IP_UDP_BYTES + STATUS_BYTES;
/// Messages that are taken from the kernel with one call.
const MESSAGES: usize = WINDOW_MAX;
/// Longest time limit that makes sense: with all attempts it lasts for minutes.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// How a client works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long an answer may take. The target is asked for its status earlier, after a few times what its
    /// answers usually take; only waiting so long without any counts as an attempt.
    pub timeout: Duration,
    /// Attempts without any progress before the client gives up. From the second on each datagram is sent
    /// as many times as there were attempts, because a loss there is more likely than elsewhere.
    pub attempts: u32,
    /// Packets under way at most; fewer when the target keeps fewer replies.
    pub window: usize,
    /// Order of bytes of the packets.
    pub order: ByteOrder,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_millis(20),
            attempts: 25,
            window: WINDOW_MAX,
            order: ByteOrder::NATIVE,
        }
    }
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Packets of transactions, each counted once.
    pub packets_sent: u64,
    /// Packets of transactions that were sent again.
    pub packets_resent: u64,
    /// Replies that were asked for again.
    pub replies_asked: u64,
    /// Status packets that were sent.
    pub status_sent: u64,
    /// How often an answer was not there in time.
    pub timeouts: u64,
    /// Packets whose request was lost, and which were answered in the end.
    pub recovered_requests: u64,
    /// Packets whose reply was lost, and came in the end.
    pub recovered_replies: u64,
    /// Datagrams that were no answer to anything under way: repeated, late, or foreign.
    pub ignored: u64,
}

/// A connection to a target.
pub struct IpbusClient {
    link: Link,
    options: ClientOptions,
    status: Status,
    /// Words of a packet of transactions, its header included.
    packet_words: usize,
}

impl IpbusClient {
    /// Asks the target at `target` what it can do.
    ///
    /// # Errors
    /// Nobody answers, or not as a target of IPbus 2.0 does.
    pub fn connect(
        target: SocketAddr,
        options: ClientOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IpbusError> {
        if options.timeout.is_zero() || options.timeout > TIMEOUT_MAX {
            return Err(IpbusError::Options("a time limit is from 1 us to 10 s".into()));
        }
        if options.attempts == 0 || options.window == 0 {
            return Err(IpbusError::Options("there must be an attempt, and a packet under way".into()));
        }
        let here = if target.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let failed = |source| IpbusError::Socket { action: "reach", target, source };
        let socket = UdpSocket::bind(here).map_err(failed)?;
        socket.connect(target).map_err(failed)?;
        socket::prepare(&socket);
        socket.set_read_timeout(Some(options.timeout)).map_err(failed)?;
        let mut link = Link {
            socket,
            target,
            options,
            clock,
            batch: Batch::new(MESSAGES, DATAGRAM_BYTES_MAX),
            outbox: socket::Outbox::new(false),
            under_way: std::collections::VecDeque::with_capacity(WINDOW_MAX),
            window: 1,
            next_id: 1,
            is_lost: true,
            odd: None,
            limit: options.timeout,
            patience: Patience::new(options.timeout),
            counters: ClientCounters::default(),
        };
        let status = link.synchronize()?;
        let packet_words = usable(&status, target)?;
        link.window = (status.buffers as usize).min(options.window).min(WINDOW_MAX);
        Ok(Self { link, options, status, packet_words })
    }

    /// Who is spoken to.
    pub fn target(&self) -> SocketAddr {
        self.link.target
    }

    /// What the target said of itself at the beginning.
    pub fn status(&self) -> Status {
        self.status
    }

    /// What happened so far.
    pub fn counters(&self) -> ClientCounters {
        self.link.counters
    }

    /// Reads words from `address` on, or all from `address` with `fifo`, by the longest transactions.
    ///
    /// # Errors
    /// See [`IpbusError`]; `words` has then whatever came.
    pub fn read_block(&mut self, address: u32, words: &mut [u32], fifo: bool) -> Result<(), IpbusError> {
        self.read(address, words, fifo, TRANSACTION_WORDS_MAX)
    }

    /// Reads words from `address` on, or all from `address` with `fifo`, each by a transaction of its own; as
    /// many as have room in a packet, and as many packets as may be under way.
    ///
    /// # Errors
    /// See [`IpbusError`]; `words` has then whatever came.
    pub fn read_each(&mut self, address: u32, words: &mut [u32], fifo: bool) -> Result<(), IpbusError> {
        self.read(address, words, fifo, 1)
    }

    /// Reads one word by one packet, and waits for it: what a program does that reads register by register.
    ///
    /// # Errors
    /// See [`IpbusError`].
    pub fn read_single(&mut self, address: u32) -> Result<u32, IpbusError> {
        let mut word = 0;
        self.read(address, std::slice::from_mut(&mut word), false, 1)?;
        Ok(word)
    }

    /// Writes words from `address` on, or all to `address` with `fifo`; returns when all were written.
    ///
    /// # Errors
    /// See [`IpbusError`]; some words may be written then, and later ones before earlier ones may not.
    pub fn write_block(&mut self, address: u32, words: &[u32], fifo: bool) -> Result<(), IpbusError> {
        let kind = if fifo { TransactionKind::WriteFifo } else { TransactionKind::Write };
        self.run(kind, address, Data::Write(words), TRANSACTION_WORDS_MAX)
    }

    /// Sets a word to `(old & and) | or`; returns the old value.
    ///
    /// # Errors
    /// See [`IpbusError`].
    pub fn rmw_bits(&mut self, address: u32, and: u32, or: u32) -> Result<u32, IpbusError> {
        let mut old = 0;
        self.run(TransactionKind::RmwBits, address, Data::Change(&[and, or], &mut old), 1)?;
        Ok(old)
    }

    /// Adds to a word, modulo 2^32; returns the old value.
    ///
    /// # Errors
    /// See [`IpbusError`].
    pub fn rmw_sum(&mut self, address: u32, addend: u32) -> Result<u32, IpbusError> {
        let mut old = 0;
        self.run(TransactionKind::RmwSum, address, Data::Change(&[addend], &mut old), 1)?;
        Ok(old)
    }

    /// Reads words from `address` on of the space that describes the target.
    ///
    /// # Errors
    /// See [`IpbusError`]; `words` has then whatever came.
    pub fn read_configuration(&mut self, address: u32, words: &mut [u32]) -> Result<(), IpbusError> {
        let kind = TransactionKind::ReadConfiguration;
        self.run(kind, address, Data::Read(words), TRANSACTION_WORDS_MAX)
    }

    fn read(&mut self, address: u32, words: &mut [u32], fifo: bool, each: usize) -> Result<(), IpbusError> {
        let kind = if fifo { TransactionKind::ReadFifo } else { TransactionKind::Read };
        self.run(kind, address, Data::Read(words), each)
    }

    fn run(
        &mut self,
        kind: TransactionKind,
        address: u32,
        data: Data<'_>,
        each: usize,
    ) -> Result<(), IpbusError> {
        let (packet_words, order) = (self.packet_words, self.options.order);
        let mut transfer = Transfer { kind, address, data, each, packet_words, order };
        let words = transfer.len();
        if kind.is_incrementing() && words as u64 > (1 << 32) - u64::from(address) {
            return Err(IpbusError::Range { address, words });
        }
        self.link.run(&mut transfer)
    }
}

/// Words of a packet that this target takes.
fn usable(status: &Status, target: SocketAddr) -> Result<usize, IpbusError> {
    let refused = |what: String| Err(IpbusError::Status { target, what });
    let mtu_bytes = status.mtu_bytes as usize;
    if mtu_bytes < MTU_BYTES_MIN {
        return refused(format!("its MTU is {mtu_bytes} bytes, less than a status needs"));
    }
    if status.buffers == 0 {
        return refused("it keeps no replies".into());
    }
    // The headers of IPv6 are longer by 20 bytes.
    let headers = IP_UDP_BYTES + if target.is_ipv6() { 20 } else { 0 };
    Ok((mtu_bytes - headers).min(DATAGRAM_BYTES_MAX) / WORD_BYTES)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
