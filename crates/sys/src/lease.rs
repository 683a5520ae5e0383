//! Whether another program has a file open for writing.
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Command of `fcntl(2)` for the signal of a lease.
const F_SETSIG: libc::c_int = 10;

/// Whether anybody has `file`, opened for reading, open for writing.
///
/// Takes a read lease (`F_SETLEASE`) for a moment, which the kernel grants only if nobody has.
///
/// # Errors
/// The file belongs to another user, or its file system has no leases.
pub fn is_open_for_writing(file: BorrowedFd<'_>) -> Result<bool> {
    let set = |command: libc::c_int, value: libc::c_int| {
        // SAFETY: the command takes an integer, and no memory is passed.
        let failed = unsafe { libc::fcntl(file.as_raw_fd(), command, value) } == -1;
        if failed { Err(Error::last_os_error()) } else { Ok(()) }
    };
    // A program that opens the file in this moment waits for the end of the lease, and the kernel sends a
    // signal. The usual one, SIGIO, would end this process; this one is ignored unless it is handled.
    set(F_SETSIG, libc::SIGURG)?;
    match set(libc::F_SETLEASE, libc::F_RDLCK) {
        Ok(()) => set(libc::F_SETLEASE, libc::F_UNLCK).map(|()| false),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
