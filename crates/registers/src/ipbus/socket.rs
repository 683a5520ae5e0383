//! Socket settings of client and target, and batched sending with UDP segmentation offload.
use std::io::Result;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use keepup_sys::datagram::{DATAGRAM_BYTES_MAX, SEGMENTS_MAX, set_join, set_segment_bytes};
use rustix::net::sockopt as option;

/// Socket buffer size, in bytes. The system may limit it.
const BUFFER_BYTES: usize = 4 << 20;

/// Enlarges the socket buffers, and enables receive offload.
pub(super) fn configure(socket: &UdpSocket) {
    let fd = socket.as_fd();
    let _ = option::set_socket_recv_buffer_size_force(fd, BUFFER_BYTES)
        .or_else(|_| option::set_socket_recv_buffer_size(fd, BUFFER_BYTES));
    let _ = option::set_socket_send_buffer_size_force(fd, BUFFER_BYTES)
        .or_else(|_| option::set_socket_send_buffer_size(fd, BUFFER_BYTES));
    // Without receive offload, datagrams arrive one by one.
    drop(set_join(fd, true));
}

/// Datagrams to send together. Consecutive ones of equal length are sent with one system call.
pub(super) struct Outbox {
    bytes: Vec<u8>,
    waiting: Vec<(Option<SocketAddr>, usize)>,
    /// Segment size that is set on the socket; none without segmentation offload.
    segment_bytes: Option<usize>,
}

impl Outbox {
    /// Sends with segmentation offload, or one by one.
    pub(super) fn new(uses_offload: bool) -> Self {
        Self { bytes: Vec::new(), waiting: Vec::new(), segment_bytes: uses_offload.then_some(0) }
    }

    /// Adds a datagram to `peer`, or to the connected address. `write` appends its bytes.
    pub(super) fn put<T>(&mut self, peer: Option<SocketAddr>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let begin = self.bytes.len();
        let result = write(&mut self.bytes);
        self.waiting.push((peer, self.bytes.len() - begin));
        result
    }

    /// Number of waiting datagrams.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Sends all datagrams. The outbox is empty afterwards, also after an error.
    pub(super) fn flush(&mut self, socket: &UdpSocket) -> Result<()> {
        let result = self.send_all(socket);
        self.bytes.clear();
        self.waiting.clear();
        result
    }

    fn send_all(&mut self, socket: &UdpSocket) -> Result<()> {
        let (mut index, mut begin) = (0, 0);
        while let Some((peer, first)) = self.waiting.get(index).copied() {
            let (mut count, mut bytes) = (1, first);
            if self.segment_bytes.is_some() {
                (count, bytes) = segment_run(&self.waiting[index..]);
                self.set_segment_size(socket, first, count);
            }
            if self.segment_bytes.is_none() {
                (count, bytes) = (1, first);
            }
            let data = &self.bytes[begin..begin + bytes];
            loop {
                let sent = match peer {
                    Some(peer) => socket.send_to(data, peer),
                    None => socket.send(data),
                };
                match sent {
                    Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(why) => return Err(why),
                    Ok(_) => break,
                }
            }
            index += count;
            begin += bytes;
        }
        Ok(())
    }

    /// Sets the segment size for the next call, if necessary.
    fn set_segment_size(&mut self, socket: &UdpSocket, bytes: usize, count: usize) {
        // A smaller segment size would split a single datagram.
        let needs = count > 1 || self.segment_bytes.is_some_and(|set| set != 0 && set < bytes);
        if needs && self.segment_bytes != Some(bytes) {
            self.segment_bytes = set_segment_bytes(socket.as_fd(), bytes).ok().map(|()| bytes);
        }
    }
}

/// Number and total size of the first datagrams that one call can send: same receiver and same length, except
/// for the last one, which may be shorter.
fn segment_run(waiting: &[(Option<SocketAddr>, usize)]) -> (usize, usize) {
    let Some((peer, length)) = waiting.first().copied() else { return (0, 0) };
    let (mut count, mut bytes) = (0, 0);
    for (to, more) in waiting.iter().take(SEGMENTS_MAX) {
        if *to != peer || *more > length || bytes + more > DATAGRAM_BYTES_MAX {
            break;
        }
        count += 1;
        bytes += more;
        if *more < length {
            break;
        }
    }
    (count.max(1), bytes.max(length))
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
