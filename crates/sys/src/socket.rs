//! What the kernel is asked about a socket beyond what `rustix` offers.
use std::os::fd::{AsRawFd, BorrowedFd};

/// Wakes whoever waits for `socket` only when `bytes` have arrived (or the peer is done, or the kernel
/// cannot hold more). Best effort: a socket that cannot do it wakes earlier.
pub fn set_receive_low_water(socket: BorrowedFd<'_>, bytes: usize) {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which lives until the call returns.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const value).cast(),
            length,
        );
    }
}
