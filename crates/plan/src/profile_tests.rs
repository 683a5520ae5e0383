//! Rates, space and limits of a profile.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::builtin;

fn csl() -> Profile {
    builtin("csl").unwrap()
}

fn seconds(seconds: u64) -> Span {
    Span(Duration::from_secs(seconds))
}

#[test]
fn required_rate_is_the_mean_over_bursts_and_peak_is_not() {
    let even = csl();
    assert_eq!(even.required_bytes_per_second(), 80e6);
    assert_eq!(even.peak_bytes_per_second(), 80e6);
    let bursts = Profile { burst: Some(Burst { on: seconds(5), off: seconds(15) }), ..even };
    assert_eq!(bursts.required_bytes_per_second(), 20e6);
    assert_eq!(bursts.peak_bytes_per_second(), 80e6);
}

#[test]
fn space_counts_the_time_in_which_events_are_sent() {
    let even = Profile { duration: seconds(50), ..csl() };
    assert_eq!(even.space_needed(), Bytes(4_000_000_000));
    let bursts = Profile { burst: Some(Burst { on: seconds(5), off: seconds(15) }), ..even };
    // Two whole periods of 20 s, then a burst of 5 s that is complete within the last 10 s.
    assert_eq!(bursts.space_needed(), Bytes(15 * 80_000_000));
    let cut = Profile { duration: seconds(43), ..bursts };
    assert_eq!(cut.space_needed(), Bytes(13 * 80_000_000));
}

#[test]
fn mean_of_distributions() {
    let uniform = EventSize::Uniform { min: Bytes(100), max: Bytes(300) };
    assert_eq!(uniform.mean_bytes(), 200.0);
    assert_eq!(uniform.max(), Bytes(300));
    let far = EventSize::LogNormal { median: Bytes(1_000_000), sigma: 0.5, max: Bytes(500_000_000) };
    let uncut = 1e6 * (0.125f64).exp();
    assert!((far.mean_bytes() / uncut - 1.0).abs() < 1e-6, "{}", far.mean_bytes());
}

/// Compares the closed form with the mean of the quantiles, which does not use the formula.
#[test]
fn mean_of_a_cut_lognormal_agrees_with_its_quantiles() {
    let (median, sigma, max) = (1000.0, 0.8, 2500.0);
    let quantile = |p: f64| {
        let (mut low, mut high) = (-9.0, 9.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if normal_cdf(middle) < p { low = middle } else { high = middle }
        }
        low
    };
    let steps = 20_000;
    let sum: f64 = (0..steps)
        .map(|i| (median * (sigma * quantile((i as f64 + 0.5) / steps as f64)).exp()).min(max))
        .sum();
    let mean = EventSize::LogNormal { median: Bytes(1000), sigma, max: Bytes(2500) }.mean_bytes();
    assert!((mean / (sum / steps as f64) - 1.0).abs() < 1e-4, "{mean} {}", sum / steps as f64);
}

#[test]
fn normal_distribution_has_the_known_values() {
    // Abramowitz and Stegun, table 26.1.
    for (x, expected) in [(0.0, 0.5), (1.0, 0.841_344_746), (2.0, 0.977_249_868), (-1.0, 0.158_655_254)] {
        assert!((normal_cdf(x) - expected).abs() < 1e-7, "{x}: {}", normal_cdf(x));
    }
}

/// Makes one profile invalid and expects an error for `key`.
fn refused(key: &str, change: impl FnOnce(&mut Profile)) {
    let mut profile = csl();
    profile.validate().unwrap();
    change(&mut profile);
    match profile.validate() {
        Ok(()) => panic!("accepted, though {key} is impossible"),
        Err(invalid) => assert_eq!(invalid.key, key, "{invalid}"),
    }
}

#[test]
fn impossible_events_are_refused() {
    refused("event.size", |p| p.event = EventSize::Fixed(Bytes(0)));
    refused("event.size", |p| p.event = EventSize::Fixed(Bytes((512 << 20) + 1)));
    refused("event.min", |p| p.event = EventSize::Uniform { min: Bytes(2), max: Bytes(1) });
    refused("event.max", |p| p.event = EventSize::Uniform { min: Bytes(2), max: Bytes(1 << 30) });
    let lognormal = |median, sigma| EventSize::LogNormal { median: Bytes(median), sigma, max: Bytes(1000) };
    refused("event.median", |p| p.event = lognormal(0, 0.5));
    refused("event.median", |p| p.event = lognormal(1001, 0.5));
    refused("event.sigma", |p| p.event = lognormal(500, 0.0));
    refused("event.sigma", |p| p.event = lognormal(500, f64::NAN));
}

#[test]
fn a_shape_must_be_the_size_of_the_event() {
    refused("event.shape", |p| p.shape = vec![512, 256]);
    let array = |p: &mut Profile, shape: &[u64]| {
        p.element = Some(Element::U16);
        p.shape = shape.to_vec();
    };
    refused("event.shape", |p| array(p, &[512, 257]));
    refused("event.shape", |p| array(p, &[u64::MAX, u64::MAX]));
    refused("event.shape", |p| array(p, &[1, 1, 1, 1, 1, 1, 1, 512, 256]));
    refused("event.shape", |p| {
        array(p, &[512, 256]);
        p.event = EventSize::Uniform { min: Bytes(1), max: Bytes(262_144) };
    });
    let mut right = csl();
    array(&mut right, &[512, 256]);
    right.validate().unwrap();
}

#[test]
fn compressed_images_must_fit_their_shape() {
    let compressed = |p: &mut Profile| {
        (p.element, p.shape) = (Some(Element::U16), vec![512, 512]);
        p.compression = Some(Compression::Bslz4);
        p.event = EventSize::Uniform { min: Bytes(50_000), max: Bytes(200_000) };
    };
    let mut right = csl();
    compressed(&mut right);
    right.validate().unwrap();
    assert_eq!(right.uncompressed(), Some(Bytes(524_288)));
    let rates = (right.uncompressed_bytes_per_second().unwrap(), right.required_bytes_per_second());
    assert!((rates.0 / rates.1 - 524_288.0 / 125_000.0).abs() < 1e-9, "{rates:?}");
    assert_eq!((csl().uncompressed(), csl().uncompressed_bytes_per_second()), (None, None));
    let large = right.with_events_of(Bytes(1 << 20));
    large.validate().unwrap();
    assert_eq!(large.uncompressed(), None);
    let refused_with = |key: &str, change: fn(&mut Profile)| {
        refused(key, |p| {
            compressed(p);
            change(p);
        });
    };
    refused_with("event.shape", |p| p.element = None);
    refused_with("event.compression", |p| p.element = Some(Element::F32));
    refused_with("event.compression", |p| p.shape.clear());
    refused_with("event.shape", |p| p.shape = vec![64, 63]);
    refused_with("event.shape", |p| p.shape = vec![1 << 15, 1 << 14]);
    refused_with("event.shape", |p| p.shape = vec![u64::MAX, 2]);
    refused_with("event.max", |p| p.event = EventSize::Uniform { min: Bytes(1), max: Bytes(524_289) });
    refused_with("event.max", |p| p.event = EventSize::Uniform { min: Bytes(1), max: Bytes(5241) });
    refused_with("event.size", |p| p.event = EventSize::Fixed(Bytes(600_000)));
    refused_with("reduce", |p| p.reductions = vec!["bin by=2".parse().unwrap()]);
}

#[test]
fn impossible_sources_are_refused() {
    refused("source.rate", |p| p.rate = EventRate::new(0.0).unwrap());
    refused("source.rate", |p| p.rate = EventRate::new(1e18).unwrap());
    refused("source.streams", |p| p.streams = 0);
    refused("source.streams", |p| p.streams = 65_536);
    refused("source.connections", |p| p.connections = 0);
    refused("source.connections", |p| p.connections = 2);
    refused("source.connections", |p| (p.streams, p.connections) = (100, 65));
    refused("source.buffer", |p| p.buffer = Bytes(262_143));
    refused("source.burst", |p| p.burst = Some(Burst { on: seconds(0), off: seconds(1) }));
    refused("source.burst", |p| p.burst = Some(Burst { on: seconds(1), off: seconds(0) }));
    refused("source.burst", |p| {
        p.burst = Some(Burst { on: Span(Duration::from_millis(1)), off: seconds(1) })
    });
    refused("source.burst", |p| p.burst = Some(Burst { on: Span(Duration::MAX), off: Span(Duration::MAX) }));
}

#[test]
fn impossible_recordings_and_requirements_are_refused() {
    refused("record.volumes", |p| p.volumes = 0);
    refused("record.placement", |p| (p.volumes, p.placement) = (2, Placement::Pinned));
    refused("record.block", |p| p.block = Bytes(4095));
    refused("record.segment", |p| p.segment = Some(Bytes(1000)));
    refused("record.segment", |p| (p.block, p.segment) = (Bytes(2 << 30), Some(Bytes(1 << 30))));
    refused("drain.rate", |p| p.drain = Some(ByteRate::default()));
    refused("require.headroom", |p| p.headroom = 0.99);
    refused("require.headroom", |p| p.headroom = f64::NAN);
    refused("require.cpu_free", |p| p.cpu_free = "100 %".parse().unwrap());
    refused("require.lifetime", |p| p.lifetime = Some("0 s".parse().unwrap()));
    refused("require.lifetime", |p| p.lifetime = Some("102 years".parse().unwrap()));
    refused("run.duration", |p| p.duration = seconds(0));
    refused("run.duration", |p| p.duration = Span(Duration::MAX));
    refused("name", |p| p.name = "two words".to_owned());
    refused("name", |p| p.name = String::new());
    refused("title", |p| p.title = "two\nlines".to_owned());
}

#[test]
fn the_message_has_key_and_figures() {
    let profile = Profile { volumes: 4, placement: Placement::Pinned, ..csl() };
    let message = profile.validate().unwrap_err().to_string();
    assert_eq!(message, "record.placement: of 4 volumes some would stay empty with 1 pinned streams");
}

proptest! {
    /// A mean over bursts never exceeds the peak, and space never exceeds the peak rate over the
    /// whole run.
    #[test]
    fn bursts_only_lower_the_mean(
        on_ms in 1..100_000u64, off_ms in 1..100_000u64, run_ms in 1..10_000_000u64,
    ) {
        let even = Profile { duration: Span(Duration::from_millis(run_ms)), ..csl() };
        let (on, off) = (Span(Duration::from_millis(on_ms)), Span(Duration::from_millis(off_ms)));
        let bursts = Profile { burst: Some(Burst { on, off }), ..even.clone() };
        prop_assert!(bursts.required_bytes_per_second() < bursts.peak_bytes_per_second());
        prop_assert!(bursts.space_needed() <= even.space_needed());
        let mean = bursts.required_bytes_per_second() * run_ms as f64 / 1e3;
        prop_assert!(bursts.space_needed().0 as f64 >= mean.floor() - 1.0, "a run begins with a burst");
    }
}

#[test]
fn a_profile_that_is_resized_can_still_be() {
    let camera = crate::builtin("eiger2-4m").unwrap();
    let large = camera.clone().with_events_of(Bytes(300 << 20));
    large.validate().unwrap();
    assert_eq!((large.event, large.rate), (EventSize::Fixed(Bytes(300 << 20)), camera.rate));
    let romanis = crate::builtin("romanis").unwrap();
    let many = romanis.clone().with_streams(508);
    assert_eq!((many.streams, many.connections), (508, romanis.connections));
    let one = romanis.with_streams(1).on_volumes(3);
    one.validate().unwrap();
    assert_eq!(
        (one.connections, one.placement),
        (1, Placement::Free),
        "one stream cannot fill three volumes"
    );
}

#[test]
fn reductions_are_checked_against_the_events() {
    let reduced = |event: &str, reduce: &str| {
        let text = format!("name = \"a\"\ntitle = \"t\"\n{event}\n[source]\nrate = \"1 /s\"\n{reduce}");
        crate::parse(&text, "a.toml", &|name| unreachable!("{name}"))
    };
    let array = "[event]\nelement = \"i16\"\nshape = [64]";
    let spectrum = "[[reduce]]\nstreams = \"0-3\"\nsteps = [\"spectrum\", \"lz4\"]\nkeep = \"both\"";
    let profile = reduced(array, spectrum).unwrap();
    assert_eq!(profile.reductions[0].to_string(), "streams=0-3 keep=both: spectrum window=none | lz4");
    let again = crate::parse(&profile.to_toml(), "a.toml", &|name| unreachable!("{name}")).unwrap();
    assert_eq!(again.reductions, profile.reductions);
    assert!(profile.with_events_of(Bytes(100)).reductions.is_empty());
    for (event, reduce, why) in [
        ("[event]\nsize = \"1 kB\"", spectrum, "event.shape"),
        (array, "[[reduce]]\nsteps = [\"bin by=3\"]", "3 does not divide 64"),
        (array, "[[reduce]]\nsteps = [\"fft\"]", "no step"),
        (array, "[[reduce]]\nsteps = [\"lz4\"]\n[[reduce]]\nsteps = [\"lz4\"]", "two reductions"),
        (array, "[[reduce]]\nsteps = [\"lz4\"]\nkeep = \"raw\"", "raw"),
    ] {
        let error = reduced(event, reduce).unwrap_err().to_string();
        assert!(error.contains(why), "{reduce}: {error}");
    }
}
