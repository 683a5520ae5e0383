//! The kernel's own counters of a socket.
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;

use super::*;

#[test]
fn tcp_info_works_only_for_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let info = tcp_info(stream.as_fd()).unwrap();
    assert!(info.segment_bytes > 500 && info.retransmits == 0, "{info:?}");
    assert!(tcp_info(UdpSocket::bind("127.0.0.1:0").unwrap().as_fd()).is_err());
}

#[test]
fn every_datagram_beyond_a_full_buffer_is_counted() {
    let to = UdpSocket::bind("127.0.0.1:0").unwrap();
    to.set_nonblocking(true).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&to, 4096).unwrap();
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..200 {
        from.send_to(&[1; 1000], to.local_addr().unwrap()).unwrap();
    }
    let (mut kept, mut dropped) = (0, 0);
    // The last ones may still be in transit.
    for _ in 0..2000 {
        kept += std::iter::from_fn(|| to.recv(&mut [0; 2000]).ok()).count();
        dropped = drops(to.as_fd()).unwrap() as usize;
        if kept + dropped >= 200 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(kept < 100, "{kept}");
    assert_eq!(dropped, 200 - kept);
}
