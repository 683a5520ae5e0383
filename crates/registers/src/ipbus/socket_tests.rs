//! Waiting datagrams are sent in order, in as few calls as possible.
use std::net::UdpSocket;
use std::time::Duration;

use super::*;

#[test]
fn a_segment_run_has_one_length_and_one_receiver() {
    let (a, b) = (Some("127.0.0.1:1".parse().unwrap()), Some("127.0.0.1:2".parse().unwrap()));
    assert_eq!(segment_run(&[(a, 8), (a, 8), (a, 4), (a, 8)]), (3, 20));
    assert_eq!(segment_run(&[(a, 8), (a, 12)]), (1, 8));
    assert_eq!(segment_run(&[(a, 8), (b, 8)]), (1, 8));
    assert_eq!(segment_run(&[(a, 60_000), (a, 60_000)]), (1, 60_000));
    assert_eq!(segment_run(&vec![(a, 4); 100]), (SEGMENTS_MAX, 4 * SEGMENTS_MAX));
}

#[test]
fn datagrams_arrive_separately_and_in_order() {
    for uses_offload in [false, true] {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        to.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let (peer, mut outbox) = (to.local_addr().ok(), Outbox::new(uses_offload));
        let lengths = [4, 4, 4, 64, 64, 8, 1400, 4];
        // The second time, the socket still has the segment size of the first.
        for _ in 0..2 {
            for (index, length) in lengths.iter().enumerate() {
                outbox.put(peer, |bytes| bytes.extend(vec![index as u8; *length]));
            }
            assert_eq!(outbox.len(), lengths.len());
            outbox.flush(&from).unwrap();
            assert_eq!(outbox.len(), 0);
            for (index, length) in lengths.iter().enumerate() {
                let mut buffer = [0; 2000];
                let got = to.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..got], vec![index as u8; *length], "uses_offload: {uses_offload}");
            }
        }
    }
}
