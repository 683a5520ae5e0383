//! io_uring engine: several blocks in flight per volume, from registered memory to registered
//! files.
//!
//! Adjacent small blocks of a file that are started together become one request of about
//! [`GATHER_BYTES`], to save work in the file system and the device.
//!
//! Safety rests on one rule: every request's block and file stay in `requests` and `files` until
//! the kernel's completion arrives, and dropping the engine waits for all of them first.
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use keepup_error::Cause;

use super::{BlockEngine, Completion, FILES_MAX, FileSlot, describe};
use crate::SysError;
use crate::pool::{Block, PageKind, PoolMemory};
use crate::waker::Waker;

const WAKE_TOKEN: u64 = u64::MAX;
/// A request of at least this size takes no further block.
const GATHER_BYTES: usize = 1 << 20;
/// Without merging, requests are submitted in batches that start at this number and double.
/// Otherwise a disk that completed all requests together would be idle until the last of the next
/// batch is prepared. A single request is submitted by the call that waits for it.
const SUBMIT_FIRST: usize = 2;
/// Largest batch.
const SUBMIT_MOST: usize = 8;

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Write,
    Read,
}

#[derive(Debug)]
enum Request {
    Transfer(Gathered),
    /// Without memory: a sync or a discard.
    Bare {
        token: u64,
    },
}

/// Adjacent blocks of a file, transferred by one request.
#[derive(Debug)]
struct Gathered {
    direction: Direction,
    slot: FileSlot,
    offset: u64,
    parts: Vec<Part>,
    bytes: usize,
    done: usize,
    /// Remaining part of `parts`, for the kernel; must not move until the request completes.
    vectors: Vec<libc::iovec>,
}

// SAFETY: the pointers in `vectors` lead into `parts`, which move with them; blocks are `Send`.
unsafe impl Send for Gathered {}

#[derive(Debug)]
struct Part {
    block: Block,
    bytes: usize,
    token: u64,
}

impl Gathered {
    fn new(direction: Direction, slot: FileSlot, offset: u64, part: Part) -> Self {
        let (parts, vectors) = (Vec::with_capacity(1), Vec::with_capacity(1));
        let mut fresh = Self { direction, slot, offset, parts, bytes: 0, done: 0, vectors };
        fresh.add(part);
        fresh
    }

    fn takes(&self, slot: FileSlot, offset: u64) -> bool {
        self.slot == slot
            && self.direction == Direction::Write
            && self.bytes < GATHER_BYTES
            && self.offset + self.bytes as u64 == offset
    }

    fn add(&mut self, part: Part) {
        self.bytes += part.bytes;
        self.parts.push(part);
    }

    /// Sets `vectors` to the remaining part; returns the pool region of its start.
    fn set_vectors(&mut self) -> u16 {
        let mut skip = self.done;
        let mut region = None;
        self.vectors.clear();
        for part in &mut self.parts {
            let from = skip.min(part.bytes);
            skip -= from;
            let part_region = part.block.region();
            let rest = &mut part.block[from..part.bytes];
            if !rest.is_empty() {
                region.get_or_insert(part_region);
                let base = rest.as_mut_ptr().cast();
                self.vectors.push(libc::iovec { iov_base: base, iov_len: rest.len() });
            }
        }
        region.unwrap_or(0)
    }

    /// Whether its blocks lie in `memory`. Only a block that is written alone may lie elsewhere.
    fn is_in(&self, memory: &PoolMemory) -> bool {
        self.parts.first().is_some_and(|part| part.block.is_in(memory))
    }

    /// Returns every block with the result.
    fn end(self, errno: Option<i32>, ended: &mut Vec<Completion>) -> usize {
        let count = self.parts.len();
        let nothing = match self.direction {
            Direction::Write => std::io::ErrorKind::WriteZero,
            Direction::Read => std::io::ErrorKind::UnexpectedEof,
        };
        ended.extend(self.parts.into_iter().map(|part| {
            let result = match errno {
                None => Ok(()),
                Some(0) => Err(nothing.into()),
                Some(errno) => Err(std::io::Error::from_raw_os_error(errno)),
            };
            Completion { token: part.token, block: Some(part.block), result }
        }));
        count
    }
}

/// Builds an entry for a registered file, an open file, or a removed one; the latter uses a
/// descriptor that is never open, so that the kernel reports the error. The library's descriptor
/// types have no common type.
macro_rules! with_target {
    ($target:expr, |$file:ident| $entry:expr) => {
        match $target {
            Some(Ok($file)) => $entry,
            Some(Err($file)) => $entry,
            None => {
                let $file = types::Fd(-1);
                $entry
            }
        }
    };
}

/// Engine on an io_uring ring with one owner.
pub struct RingEngine {
    ring: IoUring,
    memory: PoolMemory,
    waker: Waker,
    requests: Vec<Option<Request>>,
    free: Vec<usize>,
    files: Vec<Option<Arc<OwnedFd>>>,
    backlog: Vec<squeue::Entry>,
    /// Started but not submitted: the next block may still be merged.
    gathering: Option<Gathered>,
    may_gather: bool,
    /// Prepared requests that are not submitted yet.
    unsubmitted: usize,
    /// Number of prepared requests that triggers a submission.
    submit_at: usize,
    in_flight: usize,
    waker_armed: bool,
    buffers_registered: bool,
    files_registered: bool,
    note: Option<Cause>,
}

impl RingEngine {
    /// Opens a ring for `depth` writes (plus syncs) from `memory`, which `waker` wakes.
    ///
    /// Memory or files that cannot be registered are used unregistered, and [`RingEngine::note`]
    /// has the fix. Fails if the kernel or a policy forbids io_uring.
    pub fn new(memory: &PoolMemory, waker: &Waker, depth: usize) -> Result<Self, SysError> {
        let requests = depth + FILES_MAX + 1;
        let entries = u32::try_from(requests.next_power_of_two())
            .map_err(|_| SysError::Invalid { what: format!("a queue depth of {depth} is too large") })?;
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .build(entries)
            .or_else(|_| IoUring::new(entries))
            .map_err(ring_error)?;
        if !ring.params().is_feature_ext_arg() {
            let source = std::io::Error::from_raw_os_error(libc::ENOSYS);
            return Err(SysError::Ring { source, hint: "kernels from 5.11 on have what is needed" });
        }
        let mut engine = Self {
            ring,
            memory: memory.clone(),
            waker: waker.clone(),
            requests: (0..requests).map(|_| None).collect(),
            free: (0..requests).rev().collect(),
            files: vec![None; FILES_MAX],
            backlog: Vec::with_capacity(requests),
            gathering: None,
            may_gather: true,
            unsubmitted: 0,
            submit_at: SUBMIT_FIRST,
            in_flight: 0,
            waker_armed: false,
            buffers_registered: false,
            files_registered: false,
            note: None,
        };
        engine.register();
        Ok(engine)
    }

    /// Reason for reduced speed, and the command that fixes it.
    pub fn note(&self) -> Option<&Cause> {
        self.note.as_ref()
    }

    fn register(&mut self) {
        self.files_registered = self.ring.submitter().register_files_sparse(FILES_MAX as u32).is_ok();
        // It needs all pages to exist, and saves nothing with huge ones.
        if self.memory.mapping.kind() != PageKind::Plain {
            return;
        }
        // `self.memory` is dropped after the ring.
        match self.memory.mapping.register(&self.ring.submitter()) {
            Ok(()) => self.buffers_registered = true,
            Err(e) => {
                let hint = match e.raw_os_error() {
                    Some(libc::ENOMEM) => {
                        "raise the locked-memory limit (ulimit -l unlimited, or LimitMEMLOCK=infinity)"
                    }
                    _ => "",
                };
                let what = format!(
                    "cannot register the block pool with the ring: {e}; that costs 15 % more CPU per GB"
                );
                self.note = Some(Cause::new(what).with_hint(hint));
            }
        }
    }

    fn push(&mut self, entry: squeue::Entry) {
        // SAFETY: buffers and descriptors of the entry are owned by `self.requests`, `self.files` or
        // `self.waker` until its completion was seen.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.backlog.push(entry);
        }
    }

    fn target(&self, slot: FileSlot) -> Option<Result<types::Fixed, types::Fd>> {
        let file = self.files.get(slot.0 as usize)?.as_ref()?;
        Some(if self.files_registered { Ok(types::Fixed(slot.0)) } else { Err(types::Fd(file.as_raw_fd())) })
    }

    fn start(&mut self, index: usize) {
        let Some(Some(Request::Transfer(gathered))) = self.requests.get_mut(index) else { return };
        let region = gathered.set_vectors();
        let (vectors, count) = (gathered.vectors.as_ptr(), gathered.vectors.len() as u32);
        let at = gathered.offset + gathered.done as u64;
        let direction = gathered.direction;
        let slot = gathered.slot;
        // A single piece can use the registered pool; several pieces only from kernel 6.15 on.
        let single = match gathered.vectors[..] {
            [piece] if self.buffers_registered && gathered.is_in(&self.memory) => {
                Some((piece.iov_base.cast(), piece.iov_len as u32))
            }
            _ => None,
        };
        let entry = with_target!(self.target(slot), |file| match (direction, single) {
            (Direction::Write, Some((base, length))) => {
                opcode::WriteFixed::new(file, base, length, region).offset(at).build()
            }
            (Direction::Read, Some((base, length))) => {
                opcode::ReadFixed::new(file, base, length, region).offset(at).build()
            }
            (Direction::Write, None) => opcode::Writev::new(file, vectors, count).offset(at).build(),
            (Direction::Read, None) => opcode::Readv::new(file, vectors, count).offset(at).build(),
        });
        self.push(entry.user_data(index as u64));
    }

    /// Submits the merged request.
    fn start_gathered(&mut self) {
        if let Some(gathered) = self.gathering.take() {
            let index = self.store(Request::Transfer(gathered));
            self.start(index);
            self.submit_some();
        }
    }

    /// Submits waiting requests if there are enough. The rest is submitted with the next; errors
    /// are returned by [`BlockEngine::wait`].
    fn submit_some(&mut self) {
        self.unsubmitted += 1;
        if !self.may_gather && self.unsubmitted >= self.submit_at {
            self.unsubmitted = 0;
            self.submit_at = (2 * self.submit_at).min(SUBMIT_MOST);
            drop(self.ring.submit());
        }
    }

    fn store(&mut self, request: Request) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.requests.push(None);
            self.requests.len() - 1
        });
        self.requests[index] = Some(request);
        index
    }

    fn arm_waker(&mut self) {
        if !self.waker_armed {
            self.waker_armed = true;
            let fd = types::Fd(self.waker.as_fd().as_raw_fd());
            self.push(opcode::PollAdd::new(fd, libc::POLLIN as u32).build().user_data(WAKE_TOKEN));
        }
    }

    fn enter(&mut self, timeout: Duration) -> Result<(), SysError> {
        let outcome = if timeout.is_zero() {
            self.ring.submit()
        } else {
            let limit = types::Timespec::from(timeout);
            let arguments = types::SubmitArgs::new().timespec(&limit);
            self.ring.submitter().submit_with_args(1, &arguments)
        };
        match outcome {
            Ok(_) => Ok(()),
            Err(e) => match e.raw_os_error() {
                // Timeout, interruption, or a full completion queue: all handled by reaping.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(SysError::Call { action: "submit to the ring", source: e }),
            },
        }
    }

    fn reap(&mut self, ended: &mut Vec<Completion>) {
        let mut again = [0usize; 64];
        let mut agains = 0;
        for entry in self.ring.completion() {
            if entry.user_data() == WAKE_TOKEN {
                self.waker_armed = false;
                self.waker.clear();
                continue;
            }
            let index = entry.user_data() as usize;
            let Some(request) = self.requests.get_mut(index) else { continue };
            match judge(request, entry.result(), ended) {
                Judged::Ended(count) => {
                    self.free.push(index);
                    self.in_flight -= count;
                }
                Judged::Continue if agains < again.len() => {
                    again[agains] = index;
                    agains += 1;
                }
                Judged::Continue | Judged::Unknown => {}
            }
            if agains == again.len() {
                break;
            }
        }
        for &index in &again[..agains] {
            self.start(index);
        }
    }
}

enum Judged {
    /// Number of the caller's requests that completed.
    Ended(usize),
    Continue,
    Unknown,
}

fn judge(request: &mut Option<Request>, result: i32, ended: &mut Vec<Completion>) -> Judged {
    if let Some(Request::Transfer(gathered)) = request {
        match result {
            n if n > 0 && gathered.done + (n as usize) < gathered.bytes => {
                gathered.done += n as usize;
                return Judged::Continue;
            }
            e if -e == libc::EINTR || -e == libc::EAGAIN => return Judged::Continue,
            _ => {}
        }
    }
    match request.take() {
        Some(Request::Transfer(gathered)) => {
            Judged::Ended(gathered.end((result <= 0).then_some(-result), ended))
        }
        Some(Request::Bare { token }) => {
            let verdict = if result < 0 { Err(std::io::Error::from_raw_os_error(-result)) } else { Ok(()) };
            ended.push(Completion { token, block: None, result: verdict });
            Judged::Ended(1)
        }
        None => Judged::Unknown,
    }
}

fn ring_error(source: std::io::Error) -> SysError {
    let hint = match source.raw_os_error() {
        Some(libc::EPERM) => {
            "sysctl kernel.io_uring_disabled=0, or a container started with a seccomp profile that allows it"
        }
        Some(libc::ENOMEM) => "raise the locked-memory limit (ulimit -l unlimited)",
        _ => "--engine sync works everywhere, with more CPU per GB",
    };
    SysError::Ring { source, hint }
}

impl BlockEngine for RingEngine {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn buffers(&self) -> String {
        describe(self.memory.mapping.kind(), self.buffers_registered)
    }

    fn add_file(&mut self, file: Arc<OwnedFd>) -> Result<FileSlot, SysError> {
        let free = self.files.iter().position(Option::is_none);
        let slot =
            free.ok_or_else(|| SysError::Invalid { what: format!("more than {FILES_MAX} files open") })?;
        if self.files_registered {
            self.ring
                .submitter()
                .register_files_update(slot as u32, &[file.as_raw_fd()])
                .map_err(|source| SysError::Call { action: "register a file with the ring", source })?;
        }
        self.files[slot] = Some(file);
        Ok(FileSlot(slot as u32))
    }

    fn remove_file(&mut self, slot: FileSlot) {
        if let Some(file) = self.files.get_mut(slot.0 as usize) {
            if self.files_registered {
                // The next file overwrites the slot in any case.
                let _ = self.ring.submitter().register_files_update(slot.0, &[-1]);
            }
            *file = None;
        }
    }

    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let part = Part { bytes: bytes.min(block.len()), block, token };
        self.in_flight += 1;
        match &mut self.gathering {
            Some(gathering) if self.may_gather && gathering.takes(slot, offset) => gathering.add(part),
            _ => {
                self.start_gathered();
                self.gathering = Some(Gathered::new(Direction::Write, slot, offset, part));
            }
        }
    }

    fn read(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let part = Part { bytes: bytes.min(block.len()), block, token };
        self.in_flight += 1;
        self.start_gathered();
        let index = self.store(Request::Transfer(Gathered::new(Direction::Read, slot, offset, part)));
        self.start(index);
        self.submit_some();
    }

    fn set_gather(&mut self, gather: bool) {
        self.may_gather = gather;
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let flags = types::FsyncFlags::DATASYNC;
        let entry = with_target!(self.target(slot), |file| opcode::Fsync::new(file).flags(flags).build());
        self.in_flight += 1;
        let index = self.store(Request::Bare { token });
        self.push(entry.user_data(index as u64));
    }

    fn discard(&mut self, slot: FileSlot, offset: u64, bytes: u64, token: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        let entry = with_target!(self.target(slot), |file| {
            opcode::Fallocate::new(file, bytes).offset(offset).mode(mode).build()
        });
        self.in_flight += 1;
        self.start_gathered();
        let index = self.store(Request::Bare { token });
        self.push(entry.user_data(index as u64));
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        self.start_gathered();
        self.arm_waker();
        while let Some(entry) = self.backlog.pop() {
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                self.backlog.push(entry);
                break;
            }
        }
        (self.unsubmitted, self.submit_at) = (0, SUBMIT_FIRST);
        self.enter(if ended.is_empty() { timeout } else { Duration::ZERO })?;
        self.reap(ended);
        Ok(())
    }
}

impl Drop for RingEngine {
    fn drop(&mut self) {
        let mut ended = Vec::new();
        while self.in_flight > 0 {
            if self.wait(Duration::from_millis(100), &mut ended).is_err() {
                // Without completions the kernel may still read the blocks: leak their memory.
                std::mem::forget(self.memory.clone());
                for request in self.requests.drain(..) {
                    std::mem::forget(request);
                }
                return;
            }
            ended.clear();
        }
    }
}

#[cfg(test)]
#[path = "ring_tests.rs"]
mod tests;
