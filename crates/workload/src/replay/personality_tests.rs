//! What was made is what its description says.
use super::super::trace::{Hints, Trace, describe};
use super::*;

fn made(personality: &Personality, seed: u64, seconds: u64) -> (Vec<u8>, Made) {
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
            // A burst of the database may be missing at the end.
            assert!((of(operation) - expected).abs() <= 0.002, "{} {operation:?}", personality.name);
        }
        // Four standard deviations of a Poisson process.
        let rounds = personality.rounds_per_second * 100.0;
        assert!((made.rounds as f64 - rounds).abs() < 4.0 * rounds.sqrt(), "{made:?}");
    }
}

#[test]
fn files_have_filebenchs_sizes() {
    let mut rng = Rng::with_seed(5);
    let sizes: Vec<f64> = (0..100_000).map(|_| gamma(&mut rng)).collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    let variance = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / sizes.len() as f64;
    // Mean and variance of a gamma distribution of scale 1 are its shape; the error of the mean is 0.004.
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
}
