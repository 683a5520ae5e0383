//! Parsing, formatting and rejection of figures.
use proptest::prelude::*;

use super::*;

fn base(text: &str) -> f64 {
    text.parse::<Quantity>().unwrap().value
}

#[test]
fn figures_are_kept_in_base_units() {
    for (text, value) in [
        ("136 MB/s", 136e6),
        ("128 MiB/s", 134_217_728.0),
        ("1 Gbit/s", 125e6),
        ("32 bit", 4.0),
        ("33 MHz", 33e6),
        ("8 GT/s", 8e9),
        ("15000 rpm", 250.0),
        ("2.1cycles/B", 2.1),
        ("32 %", 0.32),
        ("2 KiB", 2048.0),
        (" 9 ", 9.0),
        ("0 B", 0.0),
    ] {
        assert_eq!(base(text), value, "{text}");
    }
    assert!((base("5.5 ms") - 5.5e-3).abs() < 1e-15);
    assert!((base("0.2 s/GB") - 0.2e-9).abs() < 1e-24);
}

#[test]
fn what_is_no_figure_is_refused_with_what_to_write() {
    for (text, why) in [
        ("", "does not start with a number"),
        ("MB/s", "does not start with a number"),
        ("-1 B", "negative"),
        ("1.2.3 B", "does not start with a number"),
        ("5 mb/s", "did you mean \"MB/s\"?"),
        ("5 MBps", "did you mean \"MB/s\"?"),
        ("5 furlongs", "unknown unit"),
        (&format!("{} TB", "9".repeat(400)), "too large"),
    ] {
        let error = text.parse::<Quantity>().unwrap_err().to_text();
        assert!(error.contains(why), "{text}: {error}");
        assert!(error.len() < 250, "{error}");
    }
}

#[test]
fn readers_get_four_figures() {
    let mb = Unit::named("MB/s").unwrap();
    assert_eq!(mb.rounded(103.314_917e6), "103.3 MB/s");
    assert_eq!(mb.rounded(1.237_6e10), "12376 MB/s");
    assert_eq!(mb.rounded(0.0), "0 MB/s");
    assert_eq!(Unit::named("").unwrap().rounded(9.0), "9");
}

proptest! {
    #[test]
    fn any_text_is_survived(text in ".*") {
        let _ = text.parse::<Quantity>();
    }

    #[test]
    fn what_is_written_reads_back_the_same(value in 0.0..1e15f64, unit in 0..UNITS.len()) {
        let text = UNITS[unit].exact(value);
        let read: Quantity = text.parse().unwrap();
        prop_assert_eq!(read.value, value, "{}", text);
        prop_assert_eq!(read.unit.dimension(), UNITS[unit].dimension());
    }
}
