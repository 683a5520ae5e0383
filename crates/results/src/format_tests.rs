//! Figures in words.

use super::*;

#[test]
fn rates_and_sizes_are_decimal_with_three_digits() {
    assert_eq!(rate(80e6), "80.0 MB/s");
    assert_eq!(rate(1.432e9), "1.43 GB/s");
    assert_eq!(rate(999.6e6), "1.00 GB/s");
    assert_eq!(rate(0.0), "0.00 B/s");
    assert_eq!(bytes(0), "0 B");
    assert_eq!(bytes(999), "999 B");
    assert_eq!(bytes(262_144), "262 kB");
    assert_eq!(bytes(u64::MAX), "18.4 EB");
}

#[test]
fn small_figures_keep_their_digits() {
    assert_eq!(digits(0.05), "0.05");
    assert_eq!(digits(0.0123), "0.0123");
    assert_eq!(digits(0.2), "0.20");
    assert_eq!(digits(99.96), "100");
    assert_eq!(digits(0.000_1), "1.0e-4");
}

#[test]
fn numbers_and_plurals_read_well() {
    assert_eq!(number(7), "7");
    assert_eq!(number(1_000), "1,000");
    assert_eq!(number(123_456_789), "123,456,789");
    assert_eq!(plural(1, "event"), "1 event");
    assert_eq!(plural(0, "event"), "0 events");
    assert_eq!(plural(2, "pass"), "2 passes");
}

#[test]
fn times_choose_their_unit() {
    assert_eq!(seconds(0.031), "31 ms");
    assert_eq!(seconds(60.0), "60 s");
    assert_eq!(seconds(1.5), "1.5 s");
    assert_eq!(seconds(600.0), "10 min");
    assert_eq!(seconds(28_800.0), "8 h");
    assert_eq!(seconds(864_000.0), "10 days");
}

#[test]
fn rates_of_one_sentence_have_one_unit() {
    assert_eq!(rate_like(950e6, 1.05e9), "0.95 GB/s");
    assert_eq!(rate_like(1.05e9, 950e6), "1050 MB/s");
    assert_eq!(rate_like(1.05e9, 1.2e9), "1.05 GB/s");
    assert_eq!(rate_like(80e6, 1.86e9), "80.0 MB/s", "far apart");
    assert_eq!(rate_like(0.0, 1e9), "0.00 B/s");
}
