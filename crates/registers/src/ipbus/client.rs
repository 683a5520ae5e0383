//! Client. A call returns when all its transactions are done or one has failed.
//!
//! Packets have numbers, and several are in flight. After a timeout the client requests the target's status,
//! which shows whether requests or replies were lost. Loss requests are sent again, and lost replies are
//! requested again. The target executes nothing twice: it accepts only the packet with the next number.
mod reply_timeout;
mod transfer;
mod window;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use keepup_measure::clock::Clock;
use keepup_sys::datagram::{Batch, DATAGRAM_BYTES_MAX};

use self::reply_timeout::ReplyTimeout;
use self::transfer::{Data, Transfer};
use self::window::Connection;
use super::error::IpbusError;
use super::packet::{
    ByteOrder, IP_UDP_BYTES, STATUS_BYTES, Status, TRANSACTION_WORDS_MAX, TransactionKind, WORD_BYTES,
};
use super::socket;

/// Largest number of packets in flight. Transaction numbers contain the low four bits of the packet number.
pub const WINDOW_MAX: usize = 16;
/// Smallest MTU that a target may have: that of a status packet.
const MTU_BYTES_MIN: usize = IP_UDP_BYTES + STATUS_BYTES;
/// Messages received with one system call.
const MESSAGES: usize = WINDOW_MAX;
/// Longest timeout. With all attempts it lasts for minutes.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// Settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Timeout of a reply. The client requests the target's status earlier, after a few typical reply times;
    /// only a wait of the full timeout counts as an attempt.
    pub timeout: Duration,
    /// Attempts without progress before the client gives up. The nth attempt sends each datagram n times,
    /// since a loss is likely then.
    pub attempts: u32,
    /// Largest number of packets in flight; fewer if the target keeps fewer replies.
    pub window: usize,
    /// Byte order of the packets.
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

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Transaction packets, each counted once.
    pub packets_sent: u64,
    /// Transaction packets sent again.
    pub packets_resent: u64,
    /// Replies requested again.
    pub replies_asked: u64,
    /// Status requests sent.
    pub status_sent: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Packets whose request was lost and which completed after a resend.
    pub recovered_requests: u64,
    /// Packets whose reply was lost and which completed after a second request for it.
    pub recovered_replies: u64,
    /// Datagrams that answer nothing in flight: duplicate, late, or foreign.
    pub ignored: u64,
}

/// A connection to a target.
pub struct IpbusClient {
    connection: Connection,
    options: ClientOptions,
    status: Status,
    /// Largest transaction packet with its header, in words.
    packet_words: usize,
}

impl IpbusClient {
    /// Requests the target's status and prepares a connection.
    ///
    /// # Errors
    /// No answer, or not that of an IPbus 2.0 target.
    pub fn connect(
        target: SocketAddr,
        options: ClientOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IpbusError> {
        if options.timeout.is_zero() || options.timeout > TIMEOUT_MAX {
            return Err(IpbusError::Options("the timeout must be 1 us to 10 s".into()));
        }
        if options.attempts == 0 || options.window == 0 {
            return Err(IpbusError::Options("attempts and window must be at least 1".into()));
        }
        let local = if target.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let failed = |source| IpbusError::Socket { action: "reach", target, source };
        let socket = UdpSocket::bind(local).map_err(failed)?;
        socket.connect(target).map_err(failed)?;
        socket::configure(&socket);
        socket.set_read_timeout(Some(options.timeout)).map_err(failed)?;
        let mut connection = Connection {
            socket,
            target,
            options,
            clock,
            batch: Batch::new(MESSAGES, DATAGRAM_BYTES_MAX),
            outbox: socket::Outbox::new(false),
            in_flight: std::collections::VecDeque::with_capacity(WINDOW_MAX),
            window: 1,
            next_id: 1,
            needs_sync: true,
            unexpected: None,
            limit: options.timeout,
            reply_timeout: ReplyTimeout::new(options.timeout),
            counters: ClientCounters::default(),
        };
        let status = connection.synchronize()?;
        let packet_words = packet_words(&status, target)?;
        connection.window = (status.buffers as usize).min(options.window).min(WINDOW_MAX);
        Ok(Self { connection, options, status, packet_words })
    }

    /// Address of the target.
    pub fn target(&self) -> SocketAddr {
        self.connection.target
    }

    /// Status of the target when the client connected.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Counters so far.
    pub fn counters(&self) -> ClientCounters {
        self.connection.counters
    }

    /// Reads consecutive words at `address`, or the word at `address` repeatedly with `fifo`, in transactions
    /// of maximum length.
    ///
    /// # Errors
    /// See [`IpbusError`]; `words` may then be filled in part.
    pub fn read_block(&mut self, address: u32, words: &mut [u32], fifo: bool) -> Result<(), IpbusError> {
        self.read(address, words, fifo, TRANSACTION_WORDS_MAX)
    }

    /// Like [`IpbusClient::read_block`], but with one transaction per word. Packets are filled up, and
    /// several are in flight.
    ///
    /// # Errors
    /// See [`IpbusError`]; `words` may then be filled in part.
    pub fn read_each(&mut self, address: u32, words: &mut [u32], fifo: bool) -> Result<(), IpbusError> {
        self.read(address, words, fifo, 1)
    }

    /// Reads one word with one packet and waits for the reply, like a program that reads register by
    /// register.
    ///
    /// # Errors
    /// See [`IpbusError`].
    pub fn read_single(&mut self, address: u32) -> Result<u32, IpbusError> {
        let mut word = 0;
        self.read(address, std::slice::from_mut(&mut word), false, 1)?;
        Ok(word)
    }

    /// Writes consecutive words at `address`, or all words to `address` with `fifo`.
    ///
    /// # Errors
    /// See [`IpbusError`]; some words may then be written, but no word without those before it.
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
        self.run(TransactionKind::RmwBits, address, Data::Modify(&[and, or], &mut old), 1)?;
        Ok(old)
    }

    /// Adds to a word, modulo 2^32; returns the old value.
    ///
    /// # Errors
    /// See [`IpbusError`].
    pub fn rmw_sum(&mut self, address: u32, addend: u32) -> Result<u32, IpbusError> {
        let mut old = 0;
        self.run(TransactionKind::RmwSum, address, Data::Modify(&[addend], &mut old), 1)?;
        Ok(old)
    }

    /// Reads words at `address` of the configuration space.
    ///
    /// # Errors
    /// See [`IpbusError`]; `words` may then be filled in part.
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
        self.connection.run(&mut transfer)
    }
}

/// Largest packet of a target in words, derived from its status.
fn packet_words(status: &Status, target: SocketAddr) -> Result<usize, IpbusError> {
    let refused = |what: String| Err(IpbusError::Status { target, what });
    let mtu_bytes = status.mtu_bytes as usize;
    if mtu_bytes < MTU_BYTES_MIN {
        return refused(format!("its MTU of {mtu_bytes} bytes is too small for a status packet"));
    }
    if status.buffers == 0 {
        return refused("it keeps no replies".into());
    }
    // IPv6 headers are 20 bytes longer than those of IPv4.
    let headers = IP_UDP_BYTES + if target.is_ipv6() { 20 } else { 0 };
    Ok((mtu_bytes - headers).min(DATAGRAM_BYTES_MAX) / WORD_BYTES)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
