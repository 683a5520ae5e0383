//! Files of the data path: opened for direct I/O where the file system can, preallocated, never through
//! links.
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, fallocate, fdatasync, fsync, openat};

use crate::SysError;
use crate::tap::{Asked, told};

pub(crate) mod unheard;

/// How the bytes of a file reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Past the page cache (`O_DIRECT`).
    Direct,
    /// Through the page cache, because this file system refuses direct I/O.
    Buffered,
}

/// A new file of a fixed size, opened for writing.
#[derive(Debug)]
pub struct NewFile {
    /// The open file.
    pub file: OwnedFd,
    /// Whether direct I/O holds.
    pub access: Access,
}

/// Creates `path`, which must not exist, with `bytes` of space reserved on the device.
///
/// Fails with the kernel's error: `ENOSPC` when the space is not there (nothing is left behind), `EEXIST`
/// when the file exists. Where the file system knows no reservation the file is only extended.
pub fn create_preallocated(path: &Path, bytes: u64) -> Result<NewFile, SysError> {
    let (file, access) = create(path)?;
    if let Err(e) = reserve(&file, path, bytes) {
        drop(file);
        // The first error is the one to report; a file that cannot be removed shows in the listing.
        let _ = std::fs::remove_file(path);
        return Err(e);
    }
    Ok(NewFile { file, access })
}

/// Reserves `bytes` of space from the front of `file`; where the file system knows no reservation the file is
/// only extended.
pub fn reserve(file: &OwnedFd, path: &Path, bytes: u64) -> Result<(), SysError> {
    let reserved = match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => rustix::fs::ftruncate(file, bytes),
        other => other,
    };
    reserved.map_err(|e| SysError::File { action: "reserve space for", path: path.into(), source: e.into() })
}

/// Makes `file` exactly `bytes` long: what was beyond is gone and its space free, what is new is a hole.
pub fn set_length(file: &OwnedFd, path: &Path, bytes: u64) -> Result<(), SysError> {
    rustix::fs::ftruncate(file, bytes).map_err(|e| SysError::File {
        action: "set the length of",
        path: path.into(),
        source: e.into(),
    })
}

/// Lets the page cache forget what it has of `file`, so far as it is on the disk: dirty pages stay.
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

/// Opens `path` to write it anew: created where it is missing, cut to nothing where it is there.
///
/// Direct access is never exchanged for another: where the file system has none this fails and says so.
pub fn open_truncated(path: &Path, access: Access) -> Result<OwnedFd, SysError> {
    open_as(path, access, OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY)
}

/// When written bytes become durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// With a flush afterwards.
    Flushed,
    /// Each write by itself (`O_DSYNC`).
    EachWrite,
}

/// Opens `path` to read and write it: created where it is missing, its contents left alone where it is there.
/// Direct access is never exchanged for another, as in [`open_truncated`].
pub fn open_file(path: &Path, access: Access, durability: Durability) -> Result<OwnedFd, SysError> {
    let each = if durability == Durability::EachWrite { OFlags::DSYNC } else { OFlags::empty() };
    open_as(path, access, OFlags::CREATE | OFlags::RDWR | each)
}

/// Opens `path` to read it. Direct access is never exchanged for another.
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
    let call = || unheard::write_all_at(file, bytes, offset).map(|()| bytes.len());
    told(file, (Asked::Write, offset, bytes.len()), call).map(drop)
}

/// What offsets and lengths of direct transfers to `file` must be multiples of, in bytes; nothing where the
/// kernel (before 6.1) or the file system does not tell.
pub fn direct_alignment(file: &OwnedFd) -> Option<u32> {
    let asked = rustix::fs::StatxFlags::DIOALIGN;
    let told = rustix::fs::statx(file, "", rustix::fs::AtFlags::EMPTY_PATH, asked).ok()?;
    Some(told.stx_dio_offset_align).filter(|align| *align > 0)
}

/// The same for files in `directory`; nothing where it has none without a name (`O_TMPFILE`) either.
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
        return Err(SysError::Invalid { what: format!("{} is no block device", path.display()) });
    }
    rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|e| failed(e.into()))
}

/// Reads all of `bytes` from `offset` on; the end of the file before that is an error.
pub fn read_exact_at(file: &OwnedFd, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    let wanted = bytes.len();
    let call = || unheard::read_exact_at(file, bytes, offset).map(|()| wanted);
    told(file, (Asked::Read, offset, wanted), call).map(drop)
}

/// Reads `wanted` bytes from `offset` on into the front of `bytes`, which may have room for more: direct
/// transfers end on a multiple of the alignment even where the file does not. Returns how many there were.
pub fn read_upto_at(file: &OwnedFd, bytes: &mut [u8], wanted: usize, offset: u64) -> std::io::Result<usize> {
    told(file, (Asked::Read, offset, wanted), || unheard::read_upto_at(file, bytes, wanted, offset))
}

/// Brings everything that any program has written to stable storage, on all file systems (`sync(2)`).
pub fn sync_everything() {
    rustix::fs::sync();
}

/// Makes a new or removed name in `directory` survive a power cut.
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

/// Waits until what was written to `file` is on stable storage.
pub fn sync_data(file: &OwnedFd, path: &Path) -> Result<(), SysError> {
    told(file, (Asked::Sync, 0, 0), || Ok(fdatasync(file).map(|()| 0)?))
        .map(drop)
        .map_err(|source| SysError::File { action: "sync", path: path.into(), source })
}
