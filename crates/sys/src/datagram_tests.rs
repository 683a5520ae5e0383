//! Every datagram arrives as sent, with and without joining and splitting.
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use super::*;

/// Two connected sockets.
fn pair() -> (UdpSocket, UdpSocket) {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (a, b)
}

/// All received datagrams.
fn all(receiver: &mut dyn DatagramReceiver, socket: &UdpSocket, datagrams: usize) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    while seen.len() < datagrams {
        let count = receiver.receive(socket.as_fd()).unwrap();
        for message in (0..count).map(|index| receiver.received(index).unwrap()) {
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
                // The last train is short: one whole datagram and part of another.
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

/// All receivers, with `bytes` per message and a short timeout.
fn receivers(bytes: usize) -> [Box<dyn DatagramReceiver>; 3] {
    [
        Box::new(Batch::new(1, bytes)),
        Box::new(Batch::new(8, bytes)),
        Box::new(RingReceiver::new(bytes, Duration::from_millis(20)).unwrap()),
    ]
}

#[test]
fn truncated_datagrams_are_marked() {
    for mut receiver in receivers(100) {
        let (from, to) = pair();
        from.send(&[7; 200]).unwrap();
        assert_eq!(receiver.receive(to.as_fd()).unwrap(), 1);
        let message = receiver.received(0).unwrap();
        assert!(message.is_truncated && message.data.iter().all(|byte| *byte == 7), "{message:?}");
        assert!((100..200).contains(&message.data.len()), "{message:?}");
        from.send(&[8; 100]).unwrap();
        assert_eq!(receiver.receive(to.as_fd()).unwrap(), 1);
        let message = receiver.received(0).unwrap();
        assert!(!message.is_truncated && message.data == [8; 100], "{message:?}");
    }
}

#[test]
fn receiving_nothing_times_out() {
    for mut receiver in receivers(100) {
        let (from, to) = pair();
        to.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        assert_eq!(receiver.receive(to.as_fd()).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        assert!(receiver.received(0).is_none());
        // It still receives after that.
        from.send(&[3; 10]).unwrap();
        assert_eq!(receiver.receive(to.as_fd()).unwrap(), 1);
        assert_eq!(receiver.received(0).unwrap().data, [3; 10]);
    }
}

#[test]
fn a_ring_reuses_its_buffers_and_keeps_the_order() {
    let (from, to) = pair();
    let mut receiver = RingReceiver::new(64, Duration::from_secs(5)).unwrap();
    let mut expected = 0u32;
    for burst in 0..60 {
        // From less than a ring has buffers up to the socket's capacity.
        let burst = 1 + burst * 7 % 200;
        (0..burst).for_each(|n| {
            from.send(&(expected + n).to_le_bytes()).unwrap();
        });
        let end = expected + burst;
        while expected < end {
            let count = receiver.receive(to.as_fd()).unwrap();
            for message in (0..count).map(|index| receiver.received(index).unwrap()) {
                assert_eq!(message.data, expected.to_le_bytes());
                expected += 1;
            }
        }
    }
    assert!(expected > 2048, "{expected}");
}

#[test]
fn a_ring_without_free_buffers_continues_later() {
    let (from, to) = pair();
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&to, 4 << 20)
        .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&to, 4 << 20))
        .unwrap();
    // 64 buffers of this size; more is sent before any is returned.
    let mut receiver = RingReceiver::new(DATAGRAM_BYTES_MAX, Duration::from_secs(5)).unwrap();
    from.send(&[0]).unwrap();
    assert_eq!(receiver.receive(to.as_fd()).unwrap(), 1);
    (1..=150u8).for_each(|n| {
        from.send(&[n; 4]).unwrap();
    });
    let seen = all(&mut receiver, &to, 150);
    assert_eq!(seen, (1..=150u8).map(|n| vec![n; 4]).collect::<Vec<_>>());
}
