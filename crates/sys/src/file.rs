//! Files of the data path: preallocated, opened for direct I/O if the file system supports it,
//! never through links.
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, fallocate, fdatasync, fsync, openat};

use crate::SysError;
use crate::io_trace::{RequestKind, trace_call};

pub(crate) mod untraced;

/// Path from the bytes of a file to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Bypasses the page cache (`O_DIRECT`).
    Direct,
    /// Through the page cache, because this file system refuses direct I/O.
    Buffered,
}

/// A new file of a fixed size, opened for writing.
#[derive(Debug)]
pub struct NewFile {
    /// The open file.
    pub file: OwnedFd,
    /// Whether direct I/O works.
    pub access: Access,
}

/// Creates `path`, which must not exist, with `bytes` of space reserved on the device.
///
/// Fails with the kernel's error: `ENOSPC` without enough space (the file is removed), `EEXIST`
/// if the file exists. If the file system does not support preallocation, the file is only
/// extended.
pub fn create_preallocated(path: &Path, bytes: u64) -> Result<NewFile, SysError> {
    let (file, access) = create(path)?;
    if let Err(e) = reserve(&file, path, bytes) {
        drop(file);
        // Report the first error; a file that cannot be removed is visible in the directory.
        let _ = std::fs::remove_file(path);
        return Err(e);
    }
    Ok(NewFile { file, access })
}

/// Reserves `bytes` of space from the start of `file`; if the file system does not support
/// preallocation, the file is only extended.
pub fn reserve(file: &OwnedFd, path: &Path, bytes: u64) -> Result<(), SysError> {
    let reserved = match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => rustix::fs::ftruncate(file, bytes),
        other => other,
    };
    reserved.map_err(|e| SysError::File { action: "reserve space for", path: path.into(), source: e.into() })
}

/// Sets the length of `file` to `bytes`: truncates and frees space, or extends with a hole.
pub fn set_length(file: &OwnedFd, path: &Path, bytes: u64) -> Result<(), SysError> {
    rustix::fs::ftruncate(file, bytes).map_err(|e| SysError::File {
        action: "set the length of",
        path: path.into(),
        source: e.into(),
    })
}

/// Drops the clean pages of `file` from the page cache; dirty pages stay.
pub fn forget_cached(file: &OwnedFd, path: &Path) -> Result<(), SysError> {
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).map_err(|e| SysError::File {
        action: "drop the cache of",
        path: path.into(),
        source: e.into(),
    })
}

fn create(path: &Path) -> Result<(OwnedFd, Access), SysError> {
    let base = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(0o644);
    match openat(CWD, path, base | OFlags::DIRECT, mode) {
        Ok(file) => Ok((file, Access::Direct)),
        // tmpfs before 6.6, some FUSE and network file systems answer EINVAL after creating the file.
        Err(rustix::io::Errno::INVAL) => {
            let buffered = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            openat(CWD, path, buffered, mode).map(|f| (f, Access::Buffered)).map_err(|e| SysError::File {
                action: "create",
                path: path.into(),
                source: e.into(),
            })
        }
        Err(e) => Err(SysError::File { action: "create", path: path.into(), source: e.into() }),
    }
}

/// Opens `path` for writing: creates or truncates it.
///
/// Never falls back to buffered access: without direct I/O this fails with an error.
pub fn open_truncated(path: &Path, access: Access) -> Result<OwnedFd, SysError> {
    open_as(path, access, OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY)
}

/// Time at which written bytes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After an explicit flush.
    Flushed,
    /// After each write (`O_DSYNC`).
    EachWrite,
}

/// Opens `path` for reading and writing; creates it if missing, and keeps its contents. Never
/// falls back to buffered access, like [`open_truncated`].
pub fn open_file(path: &Path, access: Access, durability: Durability) -> Result<OwnedFd, SysError> {
    let each = if durability == Durability::EachWrite { OFlags::DSYNC } else { OFlags::empty() };
    open_as(path, access, OFlags::CREATE | OFlags::RDWR | each)
}

/// Opens `path` for reading. Never falls back to buffered access.
pub fn open_to_read(path: &Path, access: Access) -> Result<OwnedFd, SysError> {
    open_as(path, access, OFlags::RDONLY)
}

fn open_as(path: &Path, access: Access, flags: OFlags) -> Result<OwnedFd, SysError> {
    let direct = if access == Access::Direct { OFlags::DIRECT } else { OFlags::empty() };
    let flags = flags | direct | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    openat(CWD, path, flags, Mode::from_raw_mode(0o644)).map_err(|e| match e {
        rustix::io::Errno::INVAL if access == Access::Direct => SysError::NotDirect { path: path.into() },
        _ => SysError::File { action: "open", path: path.into(), source: e.into() },
    })
}

/// Writes all of `bytes` at `offset`, in as few calls as the kernel takes.
pub fn write_all_at(file: &OwnedFd, bytes: &[u8], offset: u64) -> std::io::Result<()> {
    let call = || untraced::write_all_at(file, bytes, offset).map(|()| bytes.len());
    trace_call(file, (RequestKind::Write, offset, bytes.len()), call).map(drop)
}

/// Required alignment of offsets and lengths of direct transfers to `file`, in bytes; `None` if
/// the kernel (before 6.1) or the file system does not report it.
pub fn direct_alignment(file: &OwnedFd) -> Option<u32> {
    let asked = rustix::fs::StatxFlags::DIOALIGN;
    let found = rustix::fs::statx(file, "", rustix::fs::AtFlags::EMPTY_PATH, asked).ok()?;
    Some(found.stx_dio_offset_align).filter(|align| *align > 0)
}

/// The same for files in `directory`; `None` also if it does not support unnamed files
/// (`O_TMPFILE`).
pub fn direct_alignment_in(directory: &Path) -> Option<u32> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    direct_alignment(&openat(CWD, directory, flags, Mode::from_raw_mode(0o600)).ok()?)
}

/// Size of the block device `path`, bytes.
pub fn device_bytes(path: &Path) -> Result<u64, SysError> {
    let failed = |source| SysError::File { action: "measure", path: path.into(), source };
    let file = open_as(path, Access::Buffered, OFlags::empty())?;
    let kind = rustix::fs::fstat(&file).map_err(|e| failed(e.into()))?.st_mode;
    if rustix::fs::FileType::from_raw_mode(kind) != rustix::fs::FileType::BlockDevice {
        return Err(SysError::Invalid { what: format!("{} is not a block device", path.display()) });
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|e| failed(e.into()))
}

/// Fills `bytes` from `offset` on; an earlier end of file is an error.
pub fn read_exact_at(file: &OwnedFd, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    let wanted = bytes.len();
    let call = || untraced::read_exact_at(file, bytes, offset).map(|()| wanted);
    trace_call(file, (RequestKind::Read, offset, wanted), call).map(drop)
}

/// Reads `wanted` bytes from `offset` on into the front of `bytes`, which may be larger: direct
/// transfers end on a multiple of the alignment even if the file does not. Returns the number
/// read.
pub fn read_upto_at(file: &OwnedFd, bytes: &mut [u8], wanted: usize, offset: u64) -> std::io::Result<usize> {
    trace_call(file, (RequestKind::Read, offset, wanted), || {
        untraced::read_upto_at(file, bytes, wanted, offset)
    })
}

/// Flushes everything that any program has written, on all file systems (`sync(2)`).
pub fn sync_everything() {
    rustix::fs::sync();
}

/// Makes a created or removed name in `directory` durable.
pub fn sync_directory(directory: &Path) -> Result<(), SysError> {
    let file = File::open(directory).map_err(|source| SysError::File {
        action: "open directory",
        path: directory.into(),
        source,
    })?;
    fsync(&file).map_err(|e| SysError::File {
        action: "sync directory",
        path: directory.into(),
        source: e.into(),
    })
}

/// Flushes `file` to stable storage.
pub fn sync_data(file: &OwnedFd, path: &Path) -> Result<(), SysError> {
    trace_call(file, (RequestKind::Sync, 0, 0), || Ok(fdatasync(file).map(|()| 0)?))
        .map(drop)
        .map_err(|source| SysError::File { action: "sync", path: path.into(), source })
}
