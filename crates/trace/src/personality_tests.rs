//! Generated traces match their descriptions.
use fastrand::Rng;

use super::draw::{LONGEST, SHAPE, gamma};
use super::*;
use crate::{Hints, Trace, TraceInfo, describe};

fn made(personality: &Personality, seed: u64, seconds: u64) -> (Vec<u8>, Generated) {
    let mut out = Vec::new();
    let time = Duration::from_secs(seconds);
    let made = personality.make(seed, time, personality.rounds_per_second, &mut out).unwrap();
    (out, made)
}

#[test]
fn a_seed_makes_the_same_bytes_and_another_others() {
    for personality in PERSONALITIES {
        let (first, _) = made(personality, 1, 5);
        assert_eq!(first, made(personality, 1, 5).0);
        assert_ne!(first, made(personality, 2, 5).0);
        assert_eq!(Personality::of_name(personality.name).unwrap().about, personality.about);
    }
}

#[test]
fn operations_and_rates_are_those_of_the_description() {
    for (personality, reads, writes, flushes) in
        [(&WEB_SERVER, 10.0, 1.0, 0.0), (&MAIL_SERVER, 2.0, 2.0, 2.0), (&DATABASE, 1.0, 0.1003125, 0.0)]
    {
        let (bytes, made) = made(personality, 3, 100);
        let mut trace = Trace::from_bytes("made", bytes, &Hints::default(), None).unwrap();
        let info = describe(&mut trace).unwrap();
        assert_eq!(
            trace.header().origin,
            Origin::Synthetic { personality: personality.name.into(), seed: 3 }
        );
        assert_eq!((info.whole.records, info.whole.bytes), (made.records, made.bytes));
        let of = |operation| {
            let part = info.whole.operations.iter().find(|part| part.operation == operation);
            part.map_or(0, |part| part.records) as f64 / made.rounds as f64
        };
        let expected = [(Operation::Read, reads), (Operation::Write, writes), (Operation::Flush, flushes)];
        for (operation, expected) in expected {
            // The last burst of the database may be missing.
            assert!((of(operation) - expected).abs() <= 0.002, "{} {operation:?}", personality.name);
        }
        // Four standard deviations of a Poisson process.
        let rounds = personality.rounds_per_second * 100.0;
        assert!((made.rounds as f64 - rounds).abs() < 4.0 * rounds.sqrt(), "{made:?}");
    }
}

/// Statistics of 200 rounds.
fn described(personality: &Personality) -> (TraceInfo, f64) {
    let seconds = (200.0 / personality.rounds_per_second) as u64;
    let (bytes, made) = made(personality, 3, seconds);
    let mut trace = Trace::from_bytes("made", bytes, &Hints::default(), None).unwrap();
    (describe(&mut trace).unwrap(), made.rounds as f64)
}

#[test]
fn desktops_ask_for_what_their_sources_counted() {
    // Per round: reads, their bytes, writes, their bytes; the share of sequential requests, also
    // with overlapping rounds. A start has 400 requests of 20,000 bytes, 24 of 444 MB of them
    // written.
    let start = ([336.0, 7.57e6, 64.0, 0.43e6], 0.05);
    let office = ([111.71, 2.63e6, 14.13, 1.31e6], 1294.0 / 12_584.0);
    let editing = ([358.3, 7.31e6, 731.4, 88.1e6], 49_019.0 / 69_739.0);
    for (personality, (expected, sequential_share)) in
        [(&DESKTOP_START, start), (&OFFICE, office), (&IMAGE_EDITING, editing)]
    {
        let (info, rounds) = described(personality);
        let name = personality.name;
        let found: Vec<f64> = [Operation::Read, Operation::Write]
            .iter()
            .filter_map(|kind| info.whole.operations.iter().find(|part| part.operation == *kind))
            .flat_map(|part| [part.records as f64 / rounds, part.bytes as f64 / rounds])
            .collect();
        // Counts are rounded to whole requests per round, bytes to pages.
        for ((found, expected), within) in found.iter().zip(expected).zip([0.01, 0.06, 0.01, 0.06]) {
            assert!((found / expected - 1.0).abs() < within, "{name}: {found} {expected}");
        }
        let jumps = info.whole.jumps.as_ref().unwrap();
        let share = jumps.in_streams as f64 / info.whole.records as f64;
        assert!((share - sequential_share).abs() < 0.01, "{name}: {share} {sequential_share}");
    }
}

#[test]
fn a_desktop_is_idle_most_of_the_time() {
    for personality in [&DESKTOP_START, &OFFICE, &IMAGE_EDITING] {
        let (bytes, _) = made(personality, 4, 1000);
        let mut trace = Trace::from_bytes("made", bytes, &Hints::default(), None).unwrap();
        let mut records = Vec::new();
        while trace.fill(&mut records).unwrap() {}
        // Idle: no request for 100 ms or more.
        let gaps = records.windows(2).map(|pair| pair[1].issue_ns - pair[0].issue_ns);
        let idle_ns: u64 = gaps.filter(|gap| *gap >= 100_000_000).sum();
        let share = idle_ns as f64 / records.last().unwrap().issue_ns as f64;
        assert!(share > 0.75, "{}: {share}", personality.name);
    }
}

#[test]
fn lognormal_sizes_have_their_median_and_mean() {
    let mut rng = Rng::with_seed(5);
    let sizes = Sizes::Lognormal { median: 8192.0, mean: 23_500.0 };
    let mut drawn: Vec<u64> = (0..100_000).map(|_| sizes.draw(&mut rng)).collect();
    drawn.sort_unstable();
    let (median, mean) = (drawn[50_000] as f64, drawn.iter().sum::<u64>() as f64 / 1e5);
    // Truncation costs 2 % of the mean; the error of the mean is 0.7 %.
    assert!((median / 8192.0 - 1.0).abs() < 0.02 && (mean / 23_500.0 - 1.0).abs() < 0.05, "{median} {mean}");
    assert!(drawn.last().is_some_and(|longest| *longest <= IO_BYTES));
}

#[test]
fn files_have_filebenchs_sizes() {
    let mut rng = Rng::with_seed(5);
    let sizes: Vec<f64> = (0..100_000).map(|_| gamma(&mut rng)).collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
    // Mean and variance of a gamma distribution of scale 1 equal its shape; the error of the mean
    // is 0.004.
    assert!((mean - SHAPE).abs() < 0.02 && (variance - SHAPE).abs() < 0.05, "{mean} {variance}");
    let longer = sizes.iter().filter(|size| **size > LONGEST * SHAPE).count();
    assert!(longer < sizes.len() / 10_000, "{longer}");
}

#[test]
fn requests_lie_in_pages_within_the_device() {
    for personality in PERSONALITIES {
        let (bytes, _) = made(personality, 9, 20);
        let mut trace = Trace::from_bytes("made", bytes, &Hints::default(), None).unwrap();
        let mut records = Vec::new();
        while trace.fill(&mut records).unwrap() {}
        let end = trace.devices()[0].bytes.unwrap();
        for record in &records {
            assert!(record.offset % PAGE == 0 && u64::from(record.bytes) % PAGE == 0, "{record:?}");
            assert!(record.end() <= end && u64::from(record.bytes) <= IO_BYTES + PAGE, "{record:?}");
        }
    }
}

#[test]
fn nothing_and_too_much_are_refused() {
    let time = Duration::from_secs(60);
    for rate in [0.0, -1.0, f64::NAN, 1e12] {
        assert!(WEB_SERVER.make(1, time, rate, Vec::new()).is_err(), "{rate}");
    }
    // Rounds that last seconds would all be in memory.
    let error = IMAGE_EDITING.make(1, time, 5000.0, Vec::new()).unwrap_err().to_string();
    assert!(error.contains("overlapping"), "{error}");
}
