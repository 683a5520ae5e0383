//! Transfers that are not reported to the tracer: for engines, which report their own requests.
use std::os::fd::OwnedFd;

/// Writes all of `bytes` at `offset`, in as few calls as the kernel takes.
pub(crate) fn write_all_at(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, offset) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Fills `bytes` from `offset` on; an earlier end of file is an error.
pub(crate) fn read_exact_at(file: &OwnedFd, mut bytes: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::pread(file, &mut *bytes, offset) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => {
                bytes = &mut bytes[n..];
                offset += n as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Frees `bytes` at `offset`, which read as zeros afterwards. The size of the file stays.
pub(crate) fn punch(file: &OwnedFd, offset: u64, bytes: u64) -> std::io::Result<()> {
    let mode = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, mode, offset, bytes)?)
}

/// Reads up to `wanted` bytes from `offset` on into `bytes`, which may be larger; returns the
/// number read.
pub(crate) fn read_upto_at(
    file: &OwnedFd,
    bytes: &mut [u8],
    wanted: usize,
    offset: u64,
) -> std::io::Result<usize> {
    let mut done = 0;
    while done < wanted {
        match rustix::io::pread(file, &mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(done.min(wanted))
}
