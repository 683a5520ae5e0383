//! What is sent arrives, datagram by datagram, whatever joins or cuts it on the way.
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use super::*;

/// Two sockets that are connected to each other.
fn pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (a, b)
}

/// Everything received, datagram by datagram.
fn all(batch: &mut Batch, socket: &UdpSocket, datagrams: usize) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    while seen.len() < datagrams {
        batch.receive(socket.as_fd(), BATCH_MAX).unwrap();
        for message in batch.received() {
            assert!(!message.is_truncated);
            seen.extend(message.data.chunks(message.segment_bytes).map(<[u8]>::to_vec));
        }
    }
    seen
}

#[test]
fn batches_and_trains_arrive_as_the_same_datagrams() {
    for (cut, join) in [(false, false), (true, false), (false, true), (true, true)] {
        let (from, to) = pair();
        set_join(to.as_fd(), join).unwrap();
        let mut batch = Batch::new(4, 3 * 100);
        for index in 0..4 {
            for (part, datagram) in batch.message_mut(index).chunks_mut(100).enumerate() {
                datagram.fill((index * 3 + part) as u8);
            }
        }
        let (expected, lengths) = match cut {
            true => {
                set_segment_bytes(from.as_fd(), 100).unwrap();
                // The last train is short: one whole datagram and a part of one.
                (
                    (0..11u8).map(|n| vec![n; if n == 10 { 50 } else { 100 }]).collect(),
                    vec![300, 300, 300, 150],
                )
            }
            false => ((0..4u8).map(|n| vec![n * 3; 100]).collect::<Vec<_>>(), vec![100; 4]),
        };
        assert_eq!(batch.send(from.as_fd(), &lengths).unwrap(), 4);
        let seen = all(&mut Batch::new(BATCH_MAX, DATAGRAM_BYTES_MAX), &to, expected.len());
        assert_eq!(seen, expected, "cut {cut}, join {join}");
    }
}

#[test]
fn what_does_not_fit_is_told_to_be_cut_off() {
    let (from, to) = pair();
    from.send(&[7; 200]).unwrap();
    let mut batch = Batch::new(1, 100);
    assert_eq!(batch.receive(to.as_fd(), 1).unwrap(), 1);
    let message = batch.received().next().unwrap();
    assert!(message.is_truncated && message.data == [7; 100], "{message:?}");
}

#[test]
fn nobody_who_sends_is_a_matter_of_time() {
    let (from, to) = pair();
    to.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut batch = Batch::new(8, 100);
    assert_eq!(batch.receive(to.as_fd(), 8).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(batch.received().count(), 0);
    drop(from);
}
