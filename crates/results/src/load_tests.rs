//! What is said of a stretch of time follows from the readings around it.
use super::*;

const S: u64 = 1_000_000_000;

/// A reading each 100 ms for 10 s, of a load that does `rate` bytes per second and takes half a core.
fn even(rate: u64) -> Vec<LoadReading> {
    let reading = |n: u64| LoadReading { t_ns: n * S / 10, amount: n * rate / 10, cpu_ns: n * S / 20 };
    (0..=100).map(reading).collect()
}

fn over(readings: &[LoadReading], asked: f64, window: (u64, u64)) -> LoadResult {
    LoadResult::of("net=1 B/s".into(), LoadKind::Net, asked, readings, window)
}

#[test]
fn an_even_load_has_its_rate_in_every_window() {
    let readings = even(1000);
    for (from, to) in [(0, 10 * S), (S / 3, 2 * S), (123_456_789, 9 * S + 77), (S, S + S / 20)] {
        let found = over(&readings, 1000.0, (from, to));
        assert!((found.achieved.unwrap() - 1000.0).abs() < 1e-6, "{found:?}");
        assert!((found.cores().unwrap() - 0.5).abs() < 1e-6, "{found:?}");
        assert!(
            !found.fell_short && found.series.iter().all(|rate| (rate - 1000.0).abs() < 1.0),
            "{found:?}"
        );
    }
    assert_eq!(over(&readings, 1000.0, (S, 4 * S)).series.len(), 30);
}

#[test]
fn a_load_falls_short_below_99_per_cent() {
    let readings = even(1000);
    assert!(!over(&readings, 1005.0, (0, 10 * S)).fell_short);
    assert!(over(&readings, 1020.0, (0, 10 * S)).fell_short);
    // Within 50 ms of work nothing is resolved.
    assert!(!over(&readings, 1020.0, (0, S)).fell_short);
    assert!(over(&readings, 1100.0, (0, S)).fell_short);
}

#[test]
fn a_time_of_which_nothing_is_known_has_no_rate() {
    for (readings, window) in [(even(1000), (11 * S, 12 * S)), (Vec::new(), (0, S)), (even(1), (S, S))] {
        let found = over(&readings, 1.0, window);
        assert_eq!((found.achieved, found.cpu_seconds, found.seconds), (None, None, 0.0));
        assert!(found.fell_short && found.series.is_empty());
    }
}

#[test]
fn a_long_time_has_a_bounded_series() {
    let readings: Vec<LoadReading> =
        (0..=3600).map(|n| LoadReading { t_ns: n * S, amount: n * 7, cpu_ns: 0 }).collect();
    let found = over(&readings, 7.0, (0, 3600 * S));
    assert_eq!((found.series.len(), found.step_seconds), (600, 6.0));
    assert!(found.series.iter().all(|rate| (rate - 7.0).abs() < 1e-3));
}

#[test]
fn processors_are_counted_in_cores() {
    let readings = even(S / 2);
    let found = LoadResult::of("cpu=0.5".into(), LoadKind::Cpu, 0.5, &readings, (0, 10 * S));
    assert!((found.achieved.unwrap() - 0.5).abs() < 1e-9 && found.unit == LoadUnit::Cores, "{found:?}");
}
