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
    assert_eq!(rates([950e6, 1.05e9]), ["0.95 GB/s", "1.05 GB/s"]);
    assert_eq!(rates([1.05e9, 950e6]), ["1.05 GB/s", "0.95 GB/s"]);
    assert_eq!(rates([1.05e9, 1.2e9]), ["1.05 GB/s", "1.20 GB/s"]);
    assert_eq!(rates([100e6, 1.2e9, 4e9]), ["0.10 GB/s", "1.20 GB/s", "4.00 GB/s"]);
    assert_eq!(rates([0.0, 1e9]), ["0.00 GB/s", "1.00 GB/s"]);
    // Three digits of the highest rate, as alone.
    for value in [999.4, 999.6e6, 1.432e9, 80e6] {
        assert_eq!(rates([value]), [rate(value)]);
    }
}

#[test]
fn a_rate_that_would_lose_its_digits_makes_the_unit_megabytes() {
    assert_eq!(rates([1.8608e9, 80e6]), ["1861 MB/s", "80.0 MB/s"]);
    assert_eq!(rates([99e6, 1.2e9]), ["99.0 MB/s", "1200 MB/s"]);
    assert_eq!(rates([99.6e6, 1.2e9]), ["0.10 GB/s", "1.20 GB/s"]);
    // A smaller unit helps nobody.
    assert_eq!(rates([80e6, 50e3]), ["80.0 MB/s", "0.05 MB/s"]);
    assert_eq!(rates([500e3, 3.0]), ["500 kB/s", "0.003 kB/s"]);
    assert_eq!(megabytes_per_second(1.8608e9), "1861 MB/s");
    assert_eq!(megabytes_per_second(41.2e6), "41.2 MB/s");
}
