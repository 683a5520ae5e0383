//! Waiting for space in a socket, with the time spent on it.
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::{ClientError, SLICES_MAX, Sent};
use crate::time::monotonic_ns;

/// Longest time between two checks of whether to give up.
const POLL_SLICE: Duration = Duration::from_millis(50);

/// Time spent waiting for space in a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    /// Sum, ns.
    pub(crate) total_ns: u64,
    /// Longest single wait, ns.
    pub(crate) longest_ns: u64,
}

/// Error while sending.
pub(crate) enum SendError {
    /// The socket failed.
    Socket(Errno),
    /// The peer's answer was an error.
    Client(ClientError),
}

impl Waits {
    /// Waits until `socket` accepts data. Calls `on_blocked` at first and then at least every 50 ms; `false`
    /// when that gave up. Calls `on_input` when data has arrived.
    pub(crate) fn wait_writable(
        &mut self,
        socket: impl AsFd,
        on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
        on_input: &mut dyn FnMut() -> Result<(), ClientError>,
    ) -> Result<bool, SendError> {
        let begin_ns = monotonic_ns();
        let has_space = loop {
            if on_blocked().is_break() {
                break false;
            }
            let ready = poll_slice(&socket, PollFlags::IN | PollFlags::OUT).map_err(SendError::Socket)?;
            if ready.intersects(PollFlags::IN) {
                on_input().map_err(SendError::Client)?;
            }
            if ready.intersects(PollFlags::OUT | PollFlags::ERR | PollFlags::HUP) {
                break true; // an error shows in the next send
            }
        };
        self.add(monotonic_ns() - begin_ns);
        Ok(has_space)
    }

    /// Adds a wait.
    pub(crate) fn add(&mut self, waited_ns: u64) {
        self.total_ns = self.total_ns.saturating_add(waited_ns);
        self.longest_ns = self.longest_ns.max(waited_ns);
    }
}

/// Sends slices over a connection in order, see [`Client::send`].
///
/// [`Client::send`]: super::Client::send
pub(crate) fn send_all(
    socket: impl AsFd,
    slices: &mut &mut [IoSlice<'_>],
    waits: &mut Waits,
    on_blocked: &mut dyn FnMut() -> ControlFlow<()>,
    on_input: &mut dyn FnMut() -> Result<(), ClientError>,
) -> Result<Sent, SendError> {
    IoSlice::advance_slices(slices, 0); // leading empty slices count as sent
    while !slices.is_empty() {
        let batch = &slices[..slices.len().min(SLICES_MAX)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&socket, batch, &mut SendAncillaryBuffer::default(), flags) {
            Ok(sent) => IoSlice::advance_slices(slices, sent),
            Err(Errno::AGAIN) => {
                if !waits.wait_writable(&socket, on_blocked, on_input)? {
                    return Ok(Sent::Stopped);
                }
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(SendError::Socket(errno)),
        }
    }
    Ok(Sent::All)
}

/// Waits up to 50 ms for one of `wanted`; returns what `socket` is ready for.
pub(crate) fn poll_slice(socket: impl AsFd, wanted: PollFlags) -> Result<PollFlags, Errno> {
    let mut fds = [PollFd::new(&socket, wanted)];
    poll_all(&mut fds)?;
    Ok(fds[0].revents())
}

/// Waits up to 50 ms for one of `fds`.
pub(crate) fn poll_all(fds: &mut [PollFd<'_>]) -> Result<(), Errno> {
    let slice = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_SLICE.subsec_nanos()) };
    match poll(fds, Some(&slice)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}
