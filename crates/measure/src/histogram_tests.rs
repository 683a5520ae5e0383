//! Histogram figures against values known exactly, and the text form against independent decoders.

use hdrhistogram::serialization::Deserializer;
use proptest::prelude::*;

use super::*;

/// The inverse of `base64`, written on its own so that a shared mistake shows.
fn from_base64(text: &str) -> Vec<u8> {
    let mut bits = 0u32;
    let mut held = 0;
    let mut bytes = Vec::new();
    for c in text.bytes().filter(|c| *c != b'=') {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

fn close(actual: u64, expected: u64) -> bool {
    (actual as f64 - expected as f64).abs() <= 0.001 * expected as f64
}

#[test]
fn percentiles_of_a_thousand_even_steps() {
    let mut latency = Latency::new();
    for step in 1..=1000 {
        latency.record_ns(step * 1_000_000);
    }
    let summary = latency.summary();
    assert_eq!(summary.count, 1000);
    assert!(close(summary.p50_ns, 500_000_000), "{summary:?}");
    assert!(close(summary.p90_ns, 900_000_000), "{summary:?}");
    assert!(close(summary.p99_ns, 990_000_000), "{summary:?}");
    assert!(close(summary.p99_9_ns, 999_000_000), "{summary:?}");
    assert!(close(summary.max_ns, 1_000_000_000), "{summary:?}");
    assert!((summary.mean_ns - 500_500_000.0).abs() < 500_500.0, "{summary:?}");
}

#[test]
fn nothing_recorded_is_all_zero() {
    let summary = Latency::default().summary();
    assert_eq!((summary.count, summary.p50_ns, summary.max_ns, summary.mean_ns), (0, 0, 0, 0.0));
}

#[test]
fn longer_than_the_range_counts_as_the_longest() {
    let mut latency = Latency::new();
    latency.record_ns(u64::MAX);
    assert_eq!(latency.summary().count, 1);
    assert!(close(latency.summary().max_ns, LATENCY_NS_MAX));
}

#[test]
fn base64_of_the_rfc_examples() {
    let expected = [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("foobar", "Zm9vYmFy"),
    ];
    for (plain, text) in expected {
        assert_eq!(base64(plain.as_bytes()), text);
    }
}

#[test]
fn the_text_form_opens_as_histogram_logs_do() {
    // "HISTFAAA" is the cookie of V2 deflate, by which other tools know the format.
    assert!(Latency::new().to_v2_base64().unwrap().starts_with("HISTFAAA"));
}

proptest! {
    #[test]
    fn a_single_value_is_read_back_within_a_thousandth(value in 1_000..LATENCY_NS_MAX) {
        let mut latency = Latency::new();
        latency.record_ns(value);
        prop_assert!(close(latency.summary().p50_ns, value));
    }

    #[test]
    fn merging_equals_recording_in_one(a in values(), b in values()) {
        let (mut first, mut second, mut both) = (Latency::new(), Latency::new(), Latency::new());
        a.iter().for_each(|v| first.record_ns(*v));
        b.iter().for_each(|v| second.record_ns(*v));
        a.iter().chain(&b).for_each(|v| both.record_ns(*v));
        first.merge(&second);
        prop_assert_eq!(first.histogram, both.histogram);
    }

    #[test]
    fn the_text_form_holds_every_count(recorded in values()) {
        let mut latency = Latency::new();
        recorded.iter().for_each(|v| latency.record_ns(*v));
        let bytes = from_base64(&latency.to_v2_base64().unwrap());
        let decoded = Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).unwrap();
        prop_assert_eq!(decoded, latency.histogram);
    }
}

fn values() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..2 * LATENCY_NS_MAX, 0..50)
}
