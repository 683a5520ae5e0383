//! Server of a faulty disk: serves FUSE requests from files in memory, with delays or errors on
//! command.
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};

use super::mischief::{Fate, Mischief, of_read, of_write};
use super::tree::{Node, Tree};

/// Attribute timeout: the kernel caches nothing.
const TTL: Duration = Duration::ZERO;
const BLOCK_BYTES: u32 = 4096;
/// Reported free space: 1 TiB.
const BLOCKS: u64 = (1 << 40) / BLOCK_BYTES as u64;
/// Number of concurrent requests.
const THREADS: usize = 8;

/// Active faults.
#[derive(Debug, Default)]
struct Faults {
    /// Fail writes with EIO.
    failing: AtomicBool,
    /// Fail writes with ENOSPC.
    full: AtomicBool,
    /// Fail reads with EIO.
    failing_reads: AtomicBool,
    /// Fail the next flush with EIO.
    failing_flush: AtomicBool,
    /// Minimum duration of a write, ms.
    delay_ms: AtomicU64,
    /// Silent faults.
    mischief: Mutex<Vec<Mischief>>,
}

impl Faults {
    fn mischief(&self) -> MutexGuard<'_, Vec<Mischief>> {
        self.mischief.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves files at the directory `path` until `orders` ends; executes the commands read from it.
pub(super) fn serve(path: &Path, orders: impl BufRead + Send + 'static) -> std::io::Result<()> {
    let faults = Arc::new(Faults::default());
    let has_locks = std::env::var_os(super::WITHOUT_LOCKS).is_none();
    let files = Files { tree: Mutex::new(Tree::new()), faults: Arc::clone(&faults), has_locks };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("keepup-test".into())];
    config.n_threads = Some(THREADS);
    let session = fuser::spawn_mount(files, path, &config)?;
    for order in orders.lines() {
        match order?.split_once(' ') {
            Some(("delay", ms)) => faults.delay_ms.store(ms.parse().unwrap_or(0), Ordering::Relaxed),
            Some(("wrong", order)) => faults.mischief().extend(Mischief::parse(order)),
            Some(("fail", "space")) => faults.full.store(true, Ordering::Relaxed),
            Some(("fail", "reads")) => faults.failing_reads.store(true, Ordering::Relaxed),
            Some(("fail", "flushes")) => faults.failing_flush.store(true, Ordering::Relaxed),
            _ => faults.failing.store(true, Ordering::Relaxed),
        }
        #[expect(clippy::disallowed_methods, reason = "the parent reads each answer, and fails without one")]
        let mut out = std::io::stdout();
        out.write_all(super::OBEYED.as_bytes())?;
        out.flush()?;
    }
    // Lazy unmount: files may be open. Dropping the session then finds nothing to unmount.
    unmount(path, UnmountFlags::DETACH)?;
    drop(session);
    Ok(())
}

struct Files {
    tree: Mutex<Tree>,
    faults: Arc<Faults>,
    has_locks: bool,
}

impl Files {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn attributes(tree: &Tree, number: u64) -> Result<FileAttr, Errno> {
    let (kind, perm, size) = match tree.node(number)? {
        Node::File(bytes) => (FileType::RegularFile, 0o644, bytes.len() as u64),
        Node::Directory(_) => (FileType::Directory, 0o755, 0),
    };
    Ok(FileAttr {
        ino: INodeNo(number),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    })
}

fn entry(reply: ReplyEntry, found: Result<FileAttr, Errno>) {
    match found {
        Ok(attributes) => reply.entry(&TTL, &attributes, Generation(0)),
        Err(errno) => reply.error(errno),
    }
}

fn empty(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

impl Filesystem for Files {
    /// The kernel forwards lock requests only to file systems that support them; this one answers
    /// that it has none.
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        if !self.has_locks {
            let added = config.add_capabilities(InitFlags::FUSE_FLOCK_LOCKS);
            added.map_err(|_| std::io::Error::other("the kernel keeps locks to itself"))?;
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let tree = self.tree();
        entry(reply, tree.lookup(parent.0, name).and_then(|number| attributes(&tree, number)));
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match attributes(&self.tree(), number.0) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut tree = self.tree();
        let resized = size.map_or(Ok(()), |bytes| tree.resize(number.0, bytes));
        match resized.and_then(|()| attributes(&tree, number.0)) {
            Ok(attributes) => reply.attr(&TTL, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn mkdir(&self, _: &Request, parent: INodeNo, name: &OsStr, _mode: u32, _umask: u32, reply: ReplyEntry) {
        let mut tree = self.tree();
        let made = tree.add(parent.0, name, Node::empty_directory());
        entry(reply, made.and_then(|number| attributes(&tree, number)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.tree().remove(parent.0, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply, self.tree().remove(parent.0, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        match flags.is_empty() {
            true => empty(reply, self.tree().rename((parent.0, name), (new_parent.0, new_name))),
            false => reply.error(Errno::EINVAL),
        }
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mut tree = self.tree();
        let made = tree.add(parent.0, name, Node::File(Vec::new()));
        match made.and_then(|number| attributes(&tree, number)) {
            Ok(attributes) => {
                let direct = FopenFlags::FOPEN_DIRECT_IO;
                reply.created(&TTL, &attributes, Generation(0), FileHandle(0), direct);
            }
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if self.faults.failing_reads.load(Ordering::Relaxed) {
            return reply.error(Errno::EIO);
        }
        let tree = self.tree();
        let wrong = of_read(&mut self.faults.mischief(), tree.name(number.0), offset, bytes as usize);
        match (tree.read(number.0, offset, bytes as usize), wrong) {
            (Ok(data), Some(at)) => {
                let mut data = data.to_vec();
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= 1;
                }
                reply.data(&data);
            }
            (Ok(data), None) => reply.data(data),
            (Err(errno), _) => reply.error(errno),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        std::thread::sleep(Duration::from_millis(self.faults.delay_ms.load(Ordering::Relaxed)));
        // After the delay, so that requests in flight at the fault fail too.
        if self.faults.failing.load(Ordering::Relaxed) {
            return reply.error(Errno::EIO);
        }
        if self.faults.full.load(Ordering::Relaxed) {
            return reply.error(Errno::ENOSPC);
        }
        let mut tree = self.tree();
        let fate = of_write(&mut self.faults.mischief(), tree.name(number.0), offset, data.len());
        let done = match fate {
            Fate::Right => tree.write(number.0, offset, data),
            Fate::Lost => Ok(()),
            Fate::Moved(to) => tree.write(number.0, to, data),
            Fate::Flipped(at) => {
                let mut data = data.to_vec();
                data[at] ^= 1;
                tree.write(number.0, offset, &data)
            }
        };
        match done {
            Ok(()) => reply.written(data.len() as u32),
            Err(errno) => reply.error(errno),
        }
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        // Once, like a kernel that reported an error and dropped the data.
        match self.faults.failing_flush.swap(false, Ordering::Relaxed) {
            true => reply.error(Errno::EIO),
            false => reply.ok(),
        }
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &Request, number: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let tree = self.tree();
        let entries = match tree.entries(number.0) {
            Ok(entries) => entries,
            Err(errno) => return reply.error(errno),
        };
        for (at, (name, &entry)) in (1..).zip(entries).skip(offset as usize) {
            let is_file = matches!(tree.node(entry), Ok(Node::File(_)));
            let kind = if is_file { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(entry), at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(BLOCKS, BLOCKS, BLOCKS, 1 << 20, 1 << 20, BLOCK_BYTES, 255, BLOCK_BYTES);
    }

    fn fallocate(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        if mode != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let mut tree = self.tree();
        let end = offset.saturating_add(bytes);
        let done = match tree.bytes(number.0) {
            Ok(all) if (all.len() as u64) < end => tree.resize(number.0, end),
            other => other.map(drop),
        };
        empty(reply, done);
    }
}
