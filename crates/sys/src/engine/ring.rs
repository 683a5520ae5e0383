//! io_uring: several blocks under way per volume, from registered memory to registered files.
//!
//! Safety rests on one rule: every request's block and file stay in `requests` and `files` until the kernel's
//! completion arrived, and dropping the engine first waits for all of them.
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::{Completion, FILES_MAX, FileSlot, WriteEngine, describe};
use crate::SysError;
use crate::pool::{Block, PoolMemory};
use crate::waker::Waker;

const WAKE_TOKEN: u64 = u64::MAX;

#[derive(Debug)]
enum Request {
    Write { slot: FileSlot, offset: u64, block: Block, bytes: usize, done: usize, token: u64 },
    Sync { token: u64 },
}

/// An io_uring ring with one owner.
pub struct RingEngine {
    ring: IoUring,
    memory: PoolMemory,
    waker: Waker,
    requests: Vec<Option<Request>>,
    free: Vec<usize>,
    files: Vec<Option<Arc<OwnedFd>>>,
    backlog: Vec<squeue::Entry>,
    in_flight: usize,
    waker_armed: bool,
    buffers_registered: bool,
    files_registered: bool,
    note: Option<String>,
}

impl RingEngine {
    /// Opens a ring for `depth` writes (and the syncs beside them) from `memory`, woken by `waker`.
    ///
    /// Memory or files that cannot be registered are used unregistered, and [`RingEngine::note`] says what
    /// would help. Fails when the kernel or a policy forbids the ring.
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
            in_flight: 0,
            waker_armed: false,
            buffers_registered: false,
            files_registered: false,
            note: None,
        };
        engine.register();
        Ok(engine)
    }

    /// What is slower than it could be, and the command that changes it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    fn register(&mut self) {
        let buffers: Vec<libc::iovec> = (self.memory.mapping.regions())
            .map(|(base, bytes)| libc::iovec { iov_base: base.cast(), iov_len: bytes })
            .collect();
        // SAFETY: the regions are one live mapping, kept alive by `self.memory` until the ring is gone.
        match unsafe { self.ring.submitter().register_buffers(&buffers) } {
            Ok(()) => self.buffers_registered = true,
            Err(e) => {
                let cause = if e.raw_os_error() == Some(libc::ENOMEM) {
                    "\nhint: raise the locked-memory limit (ulimit -l unlimited, or LimitMEMLOCK=infinity)"
                } else {
                    ""
                };
                self.note = Some(format!("the block pool could not be registered with the ring: {e}{cause}"));
            }
        }
        self.files_registered = self.ring.submitter().register_files_sparse(FILES_MAX as u32).is_ok();
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
        let Some(Some(request)) = self.requests.get(index) else { return };
        let entry = match request {
            Request::Sync { .. } => return,
            Request::Write { slot, offset, block, bytes, done, .. } => {
                let pointer = block[*done..*bytes].as_ptr();
                let (length, at) = ((bytes - done) as u32, offset + *done as u64);
                let region = block.region();
                match (self.target(*slot), self.buffers_registered) {
                    (Some(Ok(file)), true) => {
                        opcode::WriteFixed::new(file, pointer, length, region).offset(at).build()
                    }
                    (Some(Err(file)), true) => {
                        opcode::WriteFixed::new(file, pointer, length, region).offset(at).build()
                    }
                    (Some(Ok(file)), false) => opcode::Write::new(file, pointer, length).offset(at).build(),
                    (Some(Err(file)), false) => opcode::Write::new(file, pointer, length).offset(at).build(),
                    // A removed file: let the kernel say so by a descriptor that is never open.
                    (None, _) => opcode::Write::new(types::Fd(-1), pointer, length).offset(at).build(),
                }
            }
        };
        self.push(entry.user_data(index as u64));
    }

    fn store(&mut self, request: Request) -> usize {
        self.in_flight += 1;
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
                // Time is up, interrupted, or completions must be taken first: all handled by looking.
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
            match judge(request, entry.result()) {
                Judged::Ended(completion) => {
                    self.free.push(index);
                    self.in_flight -= 1;
                    ended.push(completion);
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
    Ended(Completion),
    Continue,
    Unknown,
}

fn judge(request: &mut Option<Request>, result: i32) -> Judged {
    if let Some(Request::Write { bytes, done, .. }) = request {
        match result {
            n if n > 0 && *done + (n as usize) < *bytes => {
                *done += n as usize;
                return Judged::Continue;
            }
            e if -e == libc::EINTR || -e == libc::EAGAIN => return Judged::Continue,
            _ => {}
        }
    }
    let verdict = match (&request, result) {
        (_, e) if e < 0 => Err(std::io::Error::from_raw_os_error(-e)),
        (Some(Request::Write { .. }), 0) => Err(std::io::ErrorKind::WriteZero.into()),
        _ => Ok(()),
    };
    match request.take() {
        Some(Request::Write { block, token, .. }) => {
            Judged::Ended(Completion { token, block: Some(block), result: verdict })
        }
        Some(Request::Sync { token }) => Judged::Ended(Completion { token, block: None, result: verdict }),
        None => Judged::Unknown,
    }
}

fn ring_error(source: std::io::Error) -> SysError {
    let hint = match source.raw_os_error() {
        Some(libc::EPERM) => {
            "sysctl kernel.io_uring_disabled=0, or a container started with a seccomp profile that allows it"
        }
        Some(libc::ENOMEM) => "raise the locked-memory limit (ulimit -l unlimited)",
        _ => "--engine plain works everywhere, with more CPU per GB",
    };
    SysError::Ring { source, hint }
}

impl WriteEngine for RingEngine {
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
                // The slot is overwritten by the next file in any case.
                let _ = self.ring.submitter().register_files_update(slot.0, &[-1]);
            }
            *file = None;
        }
    }

    fn write(&mut self, slot: FileSlot, offset: u64, block: Block, bytes: usize, token: u64) {
        let bytes = bytes.min(block.len());
        let index = self.store(Request::Write { slot, offset, block, bytes, done: 0, token });
        self.start(index);
    }

    fn sync(&mut self, slot: FileSlot, token: u64) {
        let flags = types::FsyncFlags::DATASYNC;
        let entry = match self.target(slot) {
            Some(Ok(file)) => opcode::Fsync::new(file).flags(flags).build(),
            Some(Err(file)) => opcode::Fsync::new(file).flags(flags).build(),
            None => opcode::Fsync::new(types::Fd(-1)).flags(flags).build(),
        };
        let index = self.store(Request::Sync { token });
        self.push(entry.user_data(index as u64));
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn wait(&mut self, timeout: Duration, ended: &mut Vec<Completion>) -> Result<(), SysError> {
        self.arm_waker();
        while let Some(entry) = self.backlog.pop() {
            // SAFETY: as in `push`.
            if unsafe { self.ring.submission().push(&entry) }.is_err() {
                self.backlog.push(entry);
                break;
            }
        }
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
                // Without completions the kernel may still read the blocks: keep their memory for good.
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
