//! Parsing, rounding and formatting of quantities.

use std::time::Duration;

use keepup_error::Cause;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;

fn bytes(written: &str) -> u64 {
    written.parse::<Bytes>().unwrap().0
}

fn byte_rate(written: &str) -> f64 {
    written.parse::<ByteRate>().unwrap().bytes_per_second()
}

fn complaint<T: FromStr<Err = UnitError>>(written: &str) -> String {
    match written.parse::<T>() {
        Ok(_) => panic!("{written:?} was accepted"),
        Err(error) => Cause::of(&error).to_text(),
    }
}

#[test]
fn decimal_and_binary_units_are_different_sizes() {
    assert_eq!(bytes("8 MiB"), 8 << 20);
    assert_eq!(bytes("8MB"), 8_000_000);
    assert_eq!(bytes("1 GiB"), 1 << 30);
    assert_eq!(bytes("262144 B"), 262_144);
    assert_eq!(bytes(" 1.5 KiB "), 1536);
    assert_eq!(bytes("18446744073709551615 B"), u64::MAX);
    assert_eq!(byte_rate("2.1 GB/s"), 2.1e9);
    assert_eq!(byte_rate("1 MiB/s"), 1_048_576.0);
}

#[test]
fn event_rates_are_written_in_several_ways() {
    let rate = |written: &str| written.parse::<EventRate>().unwrap().events_per_second();
    assert_eq!(rate("305 /s"), 305.0);
    assert_eq!(rate("305/s"), 305.0);
    assert_eq!(rate("30 Hz"), 30.0);
    assert_eq!(rate("17.4 kHz"), 17_400.0);
}

#[test]
fn spans_and_shares_are_read() {
    let span = |written: &str| written.parse::<Span>().unwrap().0;
    assert_eq!(span("2 h"), Duration::from_secs(7200));
    assert_eq!(span("200 ms"), Duration::from_millis(200));
    assert_eq!(span("1h 30m"), Duration::from_secs(5400));
    assert_eq!("20 %".parse::<Share>().unwrap().fraction(), 0.2);
}

#[test]
fn display_has_three_figures_in_decimal_units() {
    let rate = |value| ByteRate::new(value).unwrap();
    assert_eq!(rate(1.43e9).to_string(), "1.43 GB/s");
    assert_eq!(rate(8e7).to_string(), "80.0 MB/s");
    assert_eq!(rate(8e7).binary(), "76.3 MiB/s");
    assert_eq!(rate(999_600.0).to_string(), "1.00 MB/s");
    assert_eq!(rate(99_960.0).to_string(), "100 kB/s");
    assert_eq!(rate(0.0).to_string(), "0 B/s");
    assert_eq!(Bytes(512).to_string(), "512 B");
    assert_eq!(Bytes(1 << 20).to_string(), "1.05 MB");
    assert_eq!(Bytes(1 << 20).binary(), "1.00 MiB");
    assert_eq!(Bytes((1 << 20) - 1).binary(), "1.00 MiB");
    assert_eq!(EventRate::new(305.17578125).unwrap().to_string(), "305 Hz");
    assert_eq!("8 h".parse::<Span>().unwrap().to_string(), "8h");
    assert_eq!("20 %".parse::<Share>().unwrap().to_string(), "20 %");
}

#[test]
fn bits_are_refused_with_the_figure_in_bytes() {
    let text = complaint::<ByteRate>("80 Mb/s");
    assert!(text.starts_with("cannot read \"80 Mb/s\" as a data rate:"), "{text}");
    assert!(text.contains("accepted: a number and B/s, kB/s"), "{text}");
    assert!(text.ends_with("80 Mb/s is 10 MB/s"), "{text}");
    assert!(complaint::<ByteRate>("1.6 Gbit/s").ends_with("1.6 Gbit/s is 0.2 GB/s"));
    assert!(complaint::<ByteRate>("80 Mbps").ends_with("is 10 MB/s"));
    assert!(complaint::<Bytes>("100 mbit").contains("hint: a small b counts bits"));
    assert!(complaint::<Bytes>("1 mb").contains("hint: a small b counts bits"));
}

#[test]
fn ambiguous_or_misspelt_units_are_refused_with_a_hint() {
    assert!(
        complaint::<Bytes>("8 M")
            .ends_with("hint: MB counts in powers of 1000, MiB in powers of 1024: write which")
    );
    assert!(complaint::<ByteRate>("8 G/s").contains("GiB in powers of 1024"));
    assert!(complaint::<Bytes>("256 KB").ends_with("hint: write kB for 1000 bytes or KiB for 1024 bytes"));
    assert!(
        complaint::<Bytes>("262144").ends_with("hint: write the unit after the number, such as \"8 MiB\"")
    );
    assert!(complaint::<EventRate>("30 hz").ends_with("hint: write \"30 Hz\""));
    assert!(complaint::<ByteRate>("80 MBps").ends_with("hint: write \"80 MB/s\""));
}

#[test]
fn impossible_numbers_are_refused() {
    assert!(complaint::<Bytes>("-1 B").contains("it is negative"));
    assert!(complaint::<ByteRate>("-1 MB/s").contains("it is negative"));
    assert!(complaint::<Span>("-1 s").contains("it is negative"));
    assert!(complaint::<Bytes>("NaN B").contains("does not begin with a number"));
    assert!(complaint::<ByteRate>("inf MB/s").contains("does not begin with a number"));
    assert!(complaint::<Bytes>("1.2.3 B").contains("does not begin with a number"));
    assert!(complaint::<Bytes>("18446744073709551616 B").contains("larger than 2^64"));
    assert!(complaint::<Bytes>("16384 PiB").contains("larger than 2^64"));
    assert!(complaint::<ByteRate>(&format!("{} B/s", "9".repeat(400))).contains("too large"));
    assert!(complaint::<Share>("101 %").contains("more than the whole"));
    assert!(ByteRate::new(f64::NAN).is_err());
    assert!(EventRate::new(f64::INFINITY).is_err());
    assert!(EventRate::new(-1.0).is_err());
}

#[test]
fn spans_near_the_end_of_time_are_refused_not_added_up() {
    let text = complaint::<Span>("18446744073709551615s 1000ms");
    assert!(text.contains("too many digits"), "{text}");
    assert!(complaint::<Span>("584542046090years 1s").contains("too many digits"));
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct All {
    size: Bytes,
    rate: ByteRate,
    events: EventRate,
    span: Span,
    share: Share,
}

#[test]
fn files_hold_short_exact_strings() {
    let all = All {
        size: Bytes(1 << 30),
        rate: ByteRate::new(2e7).unwrap(),
        events: EventRate::new(305.17578125).unwrap(),
        span: Span(Duration::from_millis(90_200)),
        share: "20 %".parse().unwrap(),
    };
    let text = toml::to_string(&all).unwrap();
    let expected = "size = \"1 GiB\"\nrate = \"20 MB/s\"\nevents = \"305.17578125 /s\"\n\
                    span = \"1m 30s 200ms\"\nshare = \"20 %\"\n";
    assert_eq!(text, expected);
    assert_eq!(toml::from_str::<All>(&text).unwrap(), all);
}

#[test]
fn a_bare_number_in_a_file_is_refused() {
    let error = toml::from_str::<All>("size = 262144").unwrap_err();
    assert!(error.message().contains("expected a string with a unit, such as \"8 MiB\""), "{error}");
}

/// The displayed value may differ by half a unit of the third figure.
fn close(shown: f64, value: f64) -> bool {
    (shown - value).abs() <= value * 0.00501 + 0.5
}

proptest! {
    #[test]
    fn display_reads_back_within_rounding(size in any::<u64>(), rate in 0.0..1e15f64) {
        let size = Bytes(size >> (size % 50));
        prop_assert!(close(bytes(&size.to_string()) as f64, size.0 as f64), "{size}");
        prop_assert!(close(bytes(&size.binary()) as f64, size.0 as f64), "{}", size.binary());
        let rate = ByteRate::new(rate).unwrap();
        prop_assert!(close(byte_rate(&rate.to_string()), rate.bytes_per_second()), "{rate}");
        prop_assert!(close(byte_rate(&rate.binary()), rate.bytes_per_second()), "{}", rate.binary());
    }

    #[test]
    fn files_read_back_exactly(
        size in any::<u64>(), rate in 0.0..1e18f64, events in 0.0..1e9f64, ns in 0..u64::pow(10, 17),
        share in 0.0..=100.0f64,
    ) {
        let all = All {
            size: Bytes(size),
            rate: ByteRate::new(rate).unwrap(),
            events: EventRate::new(events).unwrap(),
            span: Span(Duration::from_nanos(ns)),
            share: format!("{share} %").parse().unwrap(),
        };
        let text = toml::to_string(&all).unwrap();
        prop_assert_eq!(toml::from_str::<All>(&text).unwrap(), all);
    }

    #[test]
    fn no_text_panics(
        text in "\\PC*", number in "[0-9.]{0,30}", unit in "[a-zA-Zµ%/ ]{0,8}", tail in "[0-9a-z .]{0,40}",
    ) {
        for written in [text, format!("{number} {unit}"), format!("{number}{unit}{tail}")] {
            let _ = written.parse::<Bytes>();
            let _ = written.parse::<Span>();
            let _ = written.parse::<Share>();
            if let Ok(rate) = written.parse::<ByteRate>() {
                prop_assert!(rate.bytes_per_second().is_finite() && rate.bytes_per_second() >= 0.0);
            }
            if let Ok(rate) = written.parse::<EventRate>() {
                prop_assert!(rate.events_per_second().is_finite() && rate.events_per_second() >= 0.0);
            }
        }
    }
}
