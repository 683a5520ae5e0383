//! Open-loop schedule, datagram headers and receive backends.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use keepup_measure::clock::SystemClock;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_stamp_is_read_as_written(
        flow in any::<u32>(), number in any::<u64>(), due_ns in any::<u64>(), room in 24..100usize,
    ) {
        let mut datagram = vec![0; room];
        stamp(&mut datagram, flow, number, due_ns);
        prop_assert_eq!(read_stamp(&datagram), Some((flow, number, due_ns)));
        prop_assert_eq!(read_stamp(&datagram[..HEADER_BYTES - 1]), None);
        datagram[0] ^= 1;
        prop_assert_eq!(read_stamp(&datagram), None);
    }
}

#[test]
fn due_datagrams_are_sent_and_overdue_ones_dropped() {
    let mut schedule = Schedule { per_second: Some(1000.0), begin_ns: 0, handled: 0 };
    let ms = 1_000_000;
    assert_eq!(schedule.now(0, 64), 1);
    schedule.handled += 1;
    assert_eq!(schedule.now(ms / 2, 64), 0);
    assert_eq!(schedule.pause(ms / 2), Duration::from_micros(500));
    assert_eq!(schedule.now(5 * ms, 64), 5);
    // A second later the last 20 ms are caught up and the rest is dropped at the source.
    assert_eq!(schedule.now(1000 * ms, 64), 20);
    assert_eq!(schedule.handled, 981);
    let mut free = Schedule { per_second: None, begin_ns: 0, handled: 0 };
    assert_eq!(free.now(0, 64), 64);
}

#[test]
fn only_datagrams_of_the_flow_count() {
    let (ours, theirs) = (7, 8);
    let (sequence, counts) = (Sequence::new(), Datagrams::default());
    let mut account = Account { flow: ours, bytes: 100, sequence, counts };
    let mut train = vec![0; 300];
    for (index, datagram) in train.chunks_mut(100).enumerate() {
        stamp(datagram, if index == 1 { theirs } else { ours }, index as u64, 0);
    }
    let whole =
        Received { data: &train, segment_bytes: 100, is_truncated: false, drops: 0, arrived_ns: None };
    assert_eq!(account.enter(whole).0, 2);
    account.enter(Received { is_truncated: true, ..whole });
    account.enter(Received { data: b"x", segment_bytes: 1, ..whole });
    account.enter(Received { data: &FLOW_MAGIC, segment_bytes: 8, ..whole });
    let counts = account.counts;
    assert_eq!(
        (counts.foreign, counts.truncated, counts.longest_train, account.sequence.unique),
        (2, 1, 2, 2)
    );
}

#[test]
fn every_receive_backend_classifies_datagrams() {
    for receive_by in [ReceiveBy::Plain, ReceiveBy::Batch, ReceiveBy::Joined, ReceiveBy::Ring] {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        from.connect(to.local_addr().unwrap()).unwrap();
        to.connect(from.local_addr().unwrap()).unwrap();
        to.set_read_timeout(Some(crate::net::flow::PATIENCE)).unwrap();
        let spec = NetSpec { message_bytes: 100, receive_by, ..NetSpec::default() };
        if receive_by == ReceiveBy::Joined {
            set_join(to.as_fd(), true).unwrap();
        }
        // In sequence, with one duplicate, one reordered, and five foreign datagrams.
        let sizes =
            [(3, 0, 100), (3, 2, 100), (3, 1, 100), (3, 1, 100), (4, 9, 100), (3, 5, 99), (3, 6, 150)];
        for (flow, number, bytes) in sizes {
            let mut datagram = vec![0; bytes];
            stamp(&mut datagram, flow, number, 0);
            from.send(&datagram).unwrap();
        }
        from.send(b"").unwrap();
        from.send(&[0xff; 3000]).unwrap();
        let flow_context = FlowContext { spec, clock: Arc::new(SystemClock), shared: Arc::default() };
        flow_context.shared.sender_finished.store(true, Ordering::Relaxed);
        let report = receive(&to, 3, &flow_context);
        let counts = report.received.unwrap();
        assert_eq!(report.failure, None, "{receive_by:?}");
        assert_eq!(
            (counts.unique, counts.duplicates, counts.reordered),
            (3, 1, 1),
            "{receive_by:?}: {counts:?}"
        );
        // Oversized datagrams count as truncated if the buffer is too small for them, else as
        // foreign.
        assert_eq!(counts.truncated + counts.foreign, 5, "{receive_by:?}: {counts:?}");
        assert_eq!(flow_context.shared.bytes.load(Ordering::Relaxed), 400, "{receive_by:?}");
    }
}
