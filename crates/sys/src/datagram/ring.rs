//! Datagrams received through io_uring's multishot receive: one request for many datagrams, into
//! a ring of buffers from which the kernel chooses.
//!
//! Invariant: a buffer belongs to the kernel from its return until a completion names it; the
//! memory is freed only after the request has ended.
use std::io::{Error, ErrorKind, Result};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, RecvMsgOut, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use super::{BATCH_MAX, DatagramReceiver, Message, Notes, Received};
use crate::pool::{Block, Pool};

/// The only buffer group.
const GROUP: u16 = 0;
/// Most and fewest buffers; otherwise as many as fit [`MEMORY_BYTES`].
const BUFFERS_MAX: usize = 1024;
const BUFFERS_MIN: usize = 64;
const MEMORY_BYTES: usize = 8 << 20;
/// Header that the kernel writes before a datagram (`struct io_uring_recvmsg_out`).
const HEAD_BYTES: usize = 16;
/// `struct io_uring_buf`.
const ENTRY_BYTES: usize = size_of::<BufRingEntry>();

/// Datagram receiver over io_uring, with one request for many datagrams.
pub struct RingReceiver {
    /// Dropped first, after the request has ended, so that nothing writes to `memory` any more.
    ring: ManuallyDrop<IoUring>,
    /// The ring's entries, followed by the buffers.
    memory: ManuallyDrop<Block>,
    buffers: usize,
    bytes_each: usize,
    /// Header of the request: no name, no control messages.
    header: Box<libc::msghdr>,
    timeout: Duration,
    is_armed: bool,
    /// Buffers given to the kernel so far; it sees the lower 16 bits.
    tail: u16,
    /// Messages of the last call, and their buffers.
    received: Vec<(u16, Message)>,
}

// SAFETY: the raw pointers in `header` are null; everything else is owned.
unsafe impl Send for RingReceiver {}

impl RingReceiver {
    /// Allocates buffers for datagrams of up to `bytes`; a call waits for `timeout` at most.
    ///
    /// # Errors
    /// Kernels before 6.0, or io_uring is forbidden.
    pub fn new(bytes: usize, timeout: Duration) -> Result<Self> {
        let bytes_each = (HEAD_BYTES + bytes.max(1)).next_multiple_of(64);
        let fitting = (MEMORY_BYTES / bytes_each).clamp(BUFFERS_MIN, BUFFERS_MAX);
        let buffers = 1 << fitting.ilog2();
        let bytes = buffers * (ENTRY_BYTES + bytes_each);
        let mut pool = Pool::new(bytes).map_err(Error::other)?;
        let memory = pool.take(bytes).ok_or(ErrorKind::OutOfMemory)?;
        let ring = IoUring::builder().setup_cqsize(2 * buffers as u32).setup_coop_taskrun().build(8)?;
        // SAFETY: the memory starts on a page boundary with space for the entries, and lives
        // until the ring is dropped (`drop`).
        unsafe {
            let address = memory.pointer().addr() as u64;
            ring.submitter().register_buf_ring_with_flags(address, buffers as u16, GROUP, 0)?;
        }
        // SAFETY: a header of zeros is valid: no name, no vectors, no control messages, no flags.
        let header = Box::new(unsafe { std::mem::zeroed() });
        let mut receiver = Self {
            ring: ManuallyDrop::new(ring),
            memory: ManuallyDrop::new(memory),
            buffers,
            bytes_each,
            header,
            timeout,
            is_armed: false,
            tail: 0,
            received: Vec::with_capacity(BATCH_MAX),
        };
        (0..buffers).for_each(|buffer| receiver.lend(buffer as u16));
        receiver.publish();
        Ok(receiver)
    }

    /// Offset of a buffer in the memory.
    fn place(&self, buffer: u16) -> usize {
        self.buffers * ENTRY_BYTES + usize::from(buffer) * self.bytes_each
    }

    /// Bytes of a buffer that the kernel does not own.
    fn slice(&self, place: usize, bytes: usize) -> &[u8] {
        assert!(place + bytes <= self.memory.len(), "{bytes} bytes at {place}");
        // SAFETY: within the memory, as just asserted; a completion has named the buffer, and it is given
        // back only with `&mut self`. Not by way of a slice of the whole: the kernel writes to the rest.
        unsafe { std::slice::from_raw_parts(self.memory.pointer().add(place), bytes) }
    }

    /// Adds a buffer to the ring; the kernel sees it after `publish`.
    fn lend(&mut self, buffer: u16) {
        let slot = usize::from(self.tail) & (self.buffers - 1);
        let place = self.place(buffer);
        // SAFETY: the slot lies within the entries, which only this thread writes; the kernel does not look
        // at it before the tail is published. The buffer lies within the memory.
        unsafe {
            let entry = &mut *self.memory.pointer().cast::<BufRingEntry>().cast_mut().add(slot);
            entry.set_addr(self.memory.pointer().add(place).addr() as u64);
            entry.set_len(self.bytes_each as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Publishes the added buffers to the kernel.
    fn publish(&self) {
        // SAFETY: the tail lies within the first entry, is aligned, and is written here alone.
        let tail = unsafe {
            let place = BufRingEntry::tail(self.memory.pointer().cast());
            AtomicU16::from_ptr(place.cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }

    /// Returns the buffers of the last call.
    fn give_back(&mut self) {
        if self.received.is_empty() {
            return;
        }
        for (buffer, _) in std::mem::take(&mut self.received) {
            self.lend(buffer);
        }
        self.publish();
    }

    /// Starts the request if needed, and waits for a completion until the timeout.
    fn wait(&mut self, socket: BorrowedFd<'_>) -> Result<()> {
        if !self.is_armed {
            let request =
                opcode::RecvMsgMulti::new(Fd(socket.as_raw_fd()), &raw const *self.header, GROUP).build();
            // SAFETY: the header stays in its box until the request has ended (`drop`), and so do the
            // buffers; the descriptor is resolved when the request is submitted, in this very call.
            unsafe { self.ring.submission().push(&request) }.map_err(Error::other)?;
        }
        let wanted = usize::from(self.ring.completion().is_empty());
        let timeout = Timespec::from(self.timeout);
        let limits = SubmitArgs::new().timespec(&timeout);
        let submitted = match wanted {
            0 if self.is_armed => return Ok(()),
            wanted => self.ring.submitter().submit_with_args(wanted, &limits),
        };
        // The kernel has the request even if nothing arrived in time.
        self.is_armed = true;
        match submitted {
            Err(why) if why.raw_os_error() != Some(libc::ETIME) => Err(why),
            _ => Ok(()),
        }
    }

    /// Takes the completions.
    fn take(&mut self) -> Result<usize> {
        while self.received.len() < BATCH_MAX {
            let Some(done) = self.ring.completion().next() else { break };
            self.is_armed &= cqueue::more(done.flags());
            let Some(buffer) = cqueue::buffer_select(done.flags()).filter(|_| done.result() >= 0) else {
                match -done.result() {
                    // No buffer was free: the rest waits in the socket until the request is
                    // started again.
                    0 | libc::ENOBUFS | libc::EINTR => continue,
                    errno => return Err(Error::from_raw_os_error(errno)),
                }
            };
            let message = self.message(buffer, done.result() as usize)?;
            self.received.push((buffer, message));
        }
        match self.received.len() {
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    /// Message in a buffer with `bytes` filled.
    fn message(&self, buffer: u16, bytes: usize) -> Result<Message> {
        let place = self.place(buffer);
        let whole = self.slice(place, bytes.min(self.bytes_each));
        let parsed = RecvMsgOut::parse(whole, &self.header)
            .map_err(|()| Error::other("io_uring completed a datagram without its head"))?;
        let data = parsed.payload_data();
        Ok(Message {
            begin: place + HEAD_BYTES,
            bytes: data.len(),
            notes: Notes::default(),
            is_truncated: parsed.is_payload_truncated(),
        })
    }
}

impl DatagramReceiver for RingReceiver {
    fn most(&self) -> usize {
        BATCH_MAX
    }

    fn receive(&mut self, socket: BorrowedFd<'_>) -> Result<usize> {
        self.give_back();
        self.wait(socket)?;
        self.take()
    }

    fn received(&self, index: usize) -> Option<Received<'_>> {
        let (_, message) = self.received.get(index)?;
        Some(message.of(self.slice(message.begin, message.bytes)))
    }
}

impl Drop for RingReceiver {
    fn drop(&mut self) {
        let ended = self.ring.submitter().register_sync_cancel(None, CancelBuilder::any().all());
        let is_over = match ended {
            Ok(()) => true,
            // There was no request.
            Err(why) => why.raw_os_error() == Some(libc::ENOENT),
        };
        // SAFETY: not used after this.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        if is_over {
            // SAFETY: as above. The request has ended, so nothing writes to the memory any more;
            // if that is not certain, the memory is leaked.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
