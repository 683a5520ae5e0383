//! Socket options and queries that `rustix` does not offer.
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets the receive low-water mark: a waiter for `socket` wakes only when `bytes` have arrived
/// (or the peer has closed, or the buffer is full). Best effort: an unsupported socket wakes
/// earlier.
pub fn set_receive_low_water(socket: BorrowedFd<'_>, bytes: usize) {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    drop(set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, value));
}

/// Receives packets of a multicast group only where this socket has joined it. By default, the kernel also
/// delivers those of groups that other sockets have joined, on any interface.
///
/// IPv6 memberships are compared without their interface, so with one (its index) the socket is bound to it.
///
/// # Errors
/// IPv6 before Linux 4.20; with an interface before 5.1, without privileges before 5.7.
pub fn receive_own_groups_only(socket: BorrowedFd<'_>, is_ipv6: bool, interface: Option<u32>) -> Result<()> {
    /// From `linux/in6.h`; libc lacks it for this target.
    const IPV6_MULTICAST_ALL: libc::c_int = 29;
    match (is_ipv6, interface) {
        (false, _) => set_option(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0),
        (true, None) => set_option(socket, libc::IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0),
        (true, Some(index)) => {
            let index = i32::try_from(index).unwrap_or(i32::MAX);
            set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, index)
        }
    }
}

/// Bytes handed to the kernel that the peer has not acknowledged; 0 if the kernel does not know.
pub fn unsent_bytes(socket: BorrowedFd<'_>) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one `int`, which lives until the call returns.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if failed != 0 { 0 } else { usize::try_from(bytes).unwrap_or(0) }
}

/// State of a TCP connection (`struct tcp_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Retransmitted segments since the connection was established.
    pub retransmits: u64,
    /// Smoothed round-trip time, us.
    pub rtt_us: u32,
    /// Largest sent segment, in bytes of payload.
    pub segment_bytes: u32,
    /// Congestion window, in segments.
    pub window_segments: u32,
}

/// Queries the state of a TCP connection.
///
/// # Errors
/// The socket is not TCP.
pub fn tcp_info(socket: BorrowedFd<'_>) -> Result<TcpInfo> {
    // SAFETY: the structure is plain numbers, for which zeros are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `info`, which lives until the call returns.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(Error::last_os_error());
    }
    Ok(TcpInfo {
        retransmits: info.tcpi_total_retrans.into(),
        rtt_us: info.tcpi_rtt,
        segment_bytes: info.tcpi_snd_mss,
        window_segments: info.tcpi_snd_cwnd,
    })
}

/// Number of entries of SO_MEMINFO (SK_MEMINFO_VARS of linux/sock_diag.h), and the index of the
/// drop counter.
const MEMINFO_VARS: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Packets dropped because this socket's receive buffer was full or their checksum was wrong; a
/// 32-bit number that wraps around.
///
/// # Errors
/// Kernels before 4.12.
pub fn drops(socket: BorrowedFd<'_>) -> Result<u32> {
    let mut values = [0u32; MEMINFO_VARS];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `values`, which lives until the call returns.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if failed != 0 { Err(Error::last_os_error()) } else { Ok(values[MEMINFO_DROPS]) }
}

/// Sets a numeric option.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: libc::c_int) -> Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which lives until the call returns.
    let failed =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if failed != 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
