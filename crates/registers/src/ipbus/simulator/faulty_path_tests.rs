//! Each fault affects exactly every nth datagram.
use super::*;

/// Datagrams that leave a path when 0 to 59 enter it.
fn through(faults: &Faults, drop: u32) -> (Vec<u8>, PathCounters) {
    let mut path = FaultyPath::new(faults, drop, &mut fastrand::Rng::with_seed(faults.seed));
    let peer = "127.0.0.1:1".parse().unwrap();
    let mut out = Vec::new();
    for number in 0..60 {
        path.pass(peer, &[number], u64::from(number), &mut |_, datagram| out.push(datagram[0]));
    }
    let due = path.due_ns();
    path.release(u64::MAX, &mut |_, datagram| out.push(datagram[0]));
    assert_eq!(path.due_ns(), None);
    assert!(due.is_none_or(|due| due < 60 + 2_000_000), "held back too long");
    (out, path.counters())
}

#[test]
fn each_fault_affects_every_nth_datagram() {
    for seed in 0..10 {
        let faults = Faults { seed, ..Faults::default() };
        assert_eq!(through(&faults, 0).0, (0..60).collect::<Vec<_>>());
        let (out, counters) = through(&faults, 7);
        assert!(counters.dropped == 60 - out.len() as u64 && (8..=9).contains(&counters.dropped));
        assert!(out.is_sorted());
        let (out, counters) = through(&Faults { duplicate: 6, ..faults.clone() }, 0);
        assert_eq!((out.len(), counters.duplicated), (70, 10));
        assert!(out.is_sorted());
        let (mut out, counters) = through(&Faults { reorder: 5, ..faults }, 0);
        let overtaken = out.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(overtaken as u64 == counters.reordered && overtaken >= 11, "{out:?}");
        out.sort_unstable();
        assert_eq!(out, (0..60).collect::<Vec<_>>());
    }
}

#[test]
fn a_value_of_one_affects_every_datagram() {
    assert_eq!(through(&Faults::default(), 1).1.dropped, 60);
}
