//! Bounds of a test specification.
use super::*;

fn check(change: impl FnOnce(&mut NetSpec)) -> Result<(), String> {
    let mut spec = NetSpec::default();
    change(&mut spec);
    spec.check().map_err(|why| why.to_string())
}

#[test]
fn violations_are_reported_with_the_bounds() {
    assert_eq!(check(|_| {}), Ok(()));
    let probe = |per_second, bytes| Some(Probe { per_second, bytes });
    let udp = |spec: &mut NetSpec, bytes| {
        spec.protocol = Protocol::Udp;
        spec.message_bytes = bytes;
    };
    for (refused, word) in [
        (check(|s| s.flows = 0), "from 1 to 256"),
        (check(|s| s.flows = u32::MAX), "from 1 to 256"),
        (check(|s| (s.flows, s.direction) = (129, Direction::Both)), "258 flows"),
        (check(|s| s.message_bytes = 0), "1 to 16777216"),
        (check(|s| udp(s, 23)), "24 to 65507"),
        (check(|s| udp(s, 65_508)), "24 to 65507"),
        (check(|s| s.rate = Some(f64::NAN)), "rate"),
        (check(|s| s.rate = Some(-1.0)), "rate"),
        (check(|s| s.probe = probe(f64::NAN, 64)), "per second"),
        (check(|s| s.probe = probe(10.0, 1)), "24 to 65507"),
        (check(|s| s.run = Duration::ZERO), "7 days"),
        (check(|s| s.ramp = TIME_MAX * 2), "7 days"),
        (check(|s| s.congestion = Some("a name that is too long".into())), "15 letters"),
    ] {
        assert!(refused.as_ref().is_err_and(|why| why.contains(word)), "{word}: {refused:?}");
    }
    assert_eq!(check(|s| (s.flows, s.probe) = (0, probe(1000.0, 64))), Ok(()));
}

#[test]
fn both_ends_number_the_same_flows() {
    let spec = NetSpec {
        flows: 2,
        direction: Direction::Both,
        probe: Some(Probe { per_second: 1.0, bytes: 64 }),
        ..NetSpec::default()
    };
    let bulk = |from_client| Role::Bulk { from_client };
    assert_eq!(spec.roles(), [bulk(true), bulk(true), bulk(false), bulk(false), Role::Probe]);
}

#[test]
fn trains_fit_into_a_datagram() {
    for (bytes, segments) in [(24, 64), (1400, 46), (8000, 8), (40_000, 1), (65_507, 1)] {
        let spec = NetSpec { message_bytes: bytes, send_by: SendBy::Segments, ..NetSpec::default() };
        assert_eq!(spec.segments(), segments, "{bytes}");
    }
}
