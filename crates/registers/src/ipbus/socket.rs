//! What client and target want of a socket, and datagrams sent by the train.
use std::io::Result;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use keepup_sys::datagram::{DATAGRAM_BYTES_MAX, SEGMENTS_MAX, set_join, set_segment_bytes};
use rustix::net::sockopt as option;

/// Room for datagrams in the kernel, in bytes, as far as the system allows it.
const BUFFER_BYTES: usize = 4 << 20;

/// Asks for room, and for datagrams that were sent as a train to come as one.
pub(super) fn prepare(socket: &UdpSocket) {
    let fd = socket.as_fd();
    let _ = option::set_socket_recv_buffer_size_force(fd, BUFFER_BYTES)
        .or_else(|_| option::set_socket_recv_buffer_size(fd, BUFFER_BYTES));
    let _ = option::set_socket_send_buffer_size_force(fd, BUFFER_BYTES)
        .or_else(|_| option::set_socket_send_buffer_size(fd, BUFFER_BYTES));
    // A kernel that cannot join gives them one by one.
    drop(set_join(fd, true));
}

/// Datagrams that wait to be sent together: those of one length that follow each other go with one call.
pub(super) struct Outbox {
    bytes: Vec<u8>,
    waiting: Vec<(Option<SocketAddr>, usize)>,
    /// What the socket was last told; none where the kernel cannot cut trains.
    segment_bytes: Option<usize>,
}

impl Outbox {
    /// Sends by the train, or one by one.
    pub(super) fn new(trains: bool) -> Self {
        Self { bytes: Vec::new(), waiting: Vec::new(), segment_bytes: trains.then_some(0) }
    }

    /// One more datagram, to `peer` or to whom the socket is connected; `write` puts it behind what is there.
    pub(super) fn put<T>(&mut self, peer: Option<SocketAddr>, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let begin = self.bytes.len();
        let result = write(&mut self.bytes);
        self.waiting.push((peer, self.bytes.len() - begin));
        result
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Sends all; nothing waits afterwards, also after an error.
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
                (count, bytes) = train(&self.waiting[index..]);
                self.cut(socket, first, count);
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

    /// Has the kernel cut what comes next, where it is not set so already.
    fn cut(&mut self, socket: &UdpSocket, bytes: usize, count: usize) {
        // One alone is cut too if the last were shorter.
        let needs = count > 1 || self.segment_bytes.is_some_and(|set| set != 0 && set < bytes);
        if needs && self.segment_bytes != Some(bytes) {
            self.segment_bytes = set_segment_bytes(socket.as_fd(), bytes).ok().map(|()| bytes);
        }
    }
}

/// How many of the first datagrams can go as one train, and their bytes: one receiver and one length, except
/// for the last, which may be shorter.
fn train(waiting: &[(Option<SocketAddr>, usize)]) -> (usize, usize) {
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
