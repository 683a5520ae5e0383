//! Numbers of recorders: linear, in steps of their streams, limited by what they share, and refused.
use super::*;

fn rate(value: f64) -> MeasuredRate {
    MeasuredRate { value, low: 0.95 * value, high: 1.05 * value }
}

fn recorders(streams: u32, shared: Option<f64>) -> Recorders {
    let (one, shared, streams) = (rate(100e6), shared.map(rate), Some(streams));
    Recorders { one, shared, streams, from: "results/one".to_owned() }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6 * b
}

#[test]
fn equal_shares_add_up() {
    let found = recorders(12, None);
    for hosts in [1, 2, 3, 4, 6, 12] {
        let rate = found.predict(hosts).unwrap();
        assert!(near(rate.value, 100e6 * f64::from(hosts)), "{hosts}: {rate:?}");
        assert!(rate.low < rate.value && rate.value < rate.high, "{rate:?}");
        assert!(rate.low >= 0.95 * rate.value && rate.high <= 1.05 * rate.value, "{rate:?}");
    }
    assert_eq!(found.enough(250e6).unwrap(), Some(3));
    assert_eq!(found.enough(1_199e6).unwrap(), Some(12));
    assert_eq!(found.enough(1_201e6).unwrap(), None, "there are only 12 streams");
}

#[test]
fn the_recorder_with_the_most_streams_limits_all() {
    // Of 4 streams, one of three recorders has two: half of the rate.
    let found = recorders(4, None);
    assert!(near(found.predict(3).unwrap().value, 200e6));
    assert_eq!(found.enough(250e6).unwrap(), Some(4));
    let even = Recorders { streams: None, ..found };
    assert!(near(even.predict(3).unwrap().value, 300e6));
    assert_eq!(even.enough(250e6).unwrap(), Some(3));
}

#[test]
fn what_all_share_limits_any_number() {
    let found = recorders(508, Some(250e6));
    assert!(near(found.predict(2).unwrap().value, 200e6));
    assert!(near(found.predict(54).unwrap().value, 250e6));
    assert_eq!(found.enough(240e6).unwrap(), Some(3));
    assert_eq!(found.enough(260e6).unwrap(), None);
    // The machine is one of `keepup predict --hosts`.
    let machine = found.machine(54).unwrap();
    let parsed = Machine::parse(&machine.to_toml().unwrap(), "recorders.toml").unwrap();
    assert_eq!((parsed.hosts, parsed.resource["shared"].shared), (54, true));
}

#[test]
fn impossible_numbers_are_refused() {
    for hosts in [0, 5, u32::MAX] {
        assert!(recorders(4, None).machine(hosts).is_err(), "{hosts}");
    }
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let one = MeasuredRate { value, low: value, high: value };
        assert!(Recorders { one, ..recorders(4, None) }.predict(1).is_err(), "{value}");
    }
}
