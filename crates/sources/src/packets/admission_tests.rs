//! Senders that are admitted, held and given up.
use super::*;

fn packet(port: u16, number: u8, bytes: usize) -> Packet {
    let flow = Flow { sender: Some(([10, 0, 0, 1], port).into()), destination: None };
    let key = Key { flow, thread: None };
    Packet { key, arrived_ns: 0, drops: 0, bytes: vec![number; bytes] }
}

/// Packets fit whose numbers differ by 1.
fn fits(earlier: &[u8], later: &[u8]) -> bool {
    earlier[0].abs_diff(later[0]) == 1
}

#[test]
fn two_packets_that_fit_admit_a_sender() {
    let mut admissions = Admissions::default();
    assert_eq!(admissions.take(&packet(1, 7, 9), fits), Admission::Held);
    assert_eq!(admissions.take(&packet(2, 8, 9), fits), Admission::Held, "of another sender");
    assert_eq!(admissions.take(&packet(1, 99, 9), fits), Admission::Held);
    let earlier = vec![packet(1, 7, 9), packet(1, 99, 9)];
    assert_eq!(admissions.take(&packet(1, 8, 9), fits), Admission::New(earlier));
    assert_eq!(admissions.take(&packet(1, 50, 9), fits), Admission::Admitted);
    assert_eq!(admissions.take_given_up(), []);
}

#[test]
fn packets_and_senders_are_bounded() {
    let mut admissions = Admissions::default();
    for number in 0..20 {
        assert_eq!(admissions.take(&packet(1, 2 * number, 9), fits), Admission::Held);
    }
    assert_eq!(admissions.bytes, 9 * UNKNOWN_PACKETS_MAX);
    for port in 2..=UNKNOWN_MAX as u16 {
        admissions.take(&packet(port, 0, 9), fits);
    }
    assert_eq!(admissions.take_given_up(), []);
    // The one that was silent for longest is given up.
    admissions.take(&packet(5000, 0, 9), fits);
    let key = packet(1, 0, 0).key;
    assert_eq!(admissions.take_given_up(), [GivenUp { key, packets: 20 }]);
    for port in 1..200 {
        admissions.take(&packet(port, 0, 60_000), fits);
        assert!(admissions.bytes <= UNKNOWN_BYTES_MAX);
    }
}

#[test]
fn the_end_decides_about_the_rest() {
    let mut admissions = Admissions::default();
    admissions.take(&packet(1, 0, 9), fits);
    admissions.take(&packet(2, 0, 40), fits);
    assert_eq!(admissions.finish(|packet| packet.bytes.len() == 9), [packet(1, 0, 9)]);
    assert_eq!(admissions.take_given_up(), [GivenUp { key: packet(2, 0, 0).key, packets: 1 }]);
    assert_eq!(admissions.bytes, 0);
}

#[test]
fn threads_are_admitted_one_by_one() {
    let of_thread = |thread: u16, number| {
        let packet = packet(1, number, 9);
        Packet { key: Key { thread: Some((0, thread)), ..packet.key }, ..packet }
    };
    for named in [Vec::new(), vec!["10.0.0.1".parse().unwrap()]] {
        let mut admissions = Admissions::new(named);
        let flow = of_thread(0, 0).key.flow;
        assert_eq!(admissions.take(&of_thread(3, 7), fits), Admission::Held);
        assert_eq!(admissions.take(&of_thread(4, 8), fits), Admission::Held);
        assert!(!admissions.is_admitted(&flow));
        assert_eq!(admissions.take(&of_thread(3, 8), fits), Admission::New(vec![of_thread(3, 7)]));
        assert_eq!(admissions.take(&of_thread(5, 9), fits), Admission::Held);
        assert!(admissions.is_admitted(&flow));
        let other = Flow { destination: flow.sender, ..flow };
        assert!(!admissions.is_admitted(&other) && !admissions.is_admitted(&Flow { sender: None, ..flow }));
    }
}

#[test]
fn senders_are_named_by_address_port_or_prefix() {
    let contains =
        |text: &str, sender: &str| text.parse::<Senders>().unwrap().contains(sender.parse().unwrap());
    for (named, sender, expected) in [
        ("10.0.0.7", "10.0.0.7:1", true),
        ("10.0.0.7", "10.0.0.8:1", false),
        ("10.0.0.7:4000", "10.0.0.7:4000", true),
        ("10.0.0.7:4000", "10.0.0.7:4001", false),
        ("10.0.0.0/23", "10.0.1.255:1", true),
        ("10.0.0.0/23", "10.0.2.0:1", false),
        ("0.0.0.0/0", "9.9.9.9:1", true),
        ("10.0.0.7", "[::ffff:10.0.0.7]:1", true),
        ("fd00::/8", "[fdff::1]:1", true),
        ("fd00::/8", "[fe80::1]:1", false),
        ("::/0", "[fe80::1]:1", true),
        ("::/0", "10.0.0.7:1", false),
    ] {
        assert_eq!(contains(named, sender), expected, "{named} {sender}");
    }
    for wrong in ["", "host", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/x"] {
        assert!(wrong.parse::<Senders>().is_err(), "{wrong}");
    }
}
