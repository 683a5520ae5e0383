//! Parsing and formatting of figures with ranges and sources.
use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Holder {
    rate: Ranged,
}

fn read(rate: &str) -> Result<Ranged, String> {
    let holder: Result<Holder, _> = toml::from_str(&format!("rate = {rate}"));
    holder.map(|holder| holder.rate).map_err(|error| error.message().to_owned())
}

#[test]
fn a_figure_has_value_range_and_source() {
    let text =
        r#"{ value = "136 MB/s", range = ["130 MB/s", "140 MiB/s"], source = "paper", from = "p. 8" }"#;
    let rate = read(text).unwrap();
    assert_eq!((rate.value, rate.low, rate.high), (136e6, 130e6, 146_800_640.0));
    assert_eq!((rate.source, rate.from.as_str()), (Source::Paper, "p. 8"));
    assert_eq!(rate.to_string(), "136 MB/s (130 MB/s to 146.8 MB/s)");
    let plain = read("\"9\"").unwrap();
    assert_eq!((plain.value, plain.source, plain.has_range()), (9.0, Source::Given, false));
    assert_eq!(plain.to_string(), "9");
}

#[test]
fn ranges_that_cannot_be_are_refused() {
    for (text, why) in [
        (r#"{ value = "5 B", range = ["6 B", "4 B"], source = "guessed", from = "x" }"#, "reversed"),
        (
            r#"{ value = "5 B", range = ["6 B", "7 B"], source = "guessed", from = "x" }"#,
            "does not contain its value",
        ),
        (r#"{ value = "5 B", range = ["4 B", "7 s"], source = "guessed", from = "x" }"#, "another unit"),
        (r#"{ value = "5 B", source = "guessed" }"#, "the source is missing"),
        (r#"{ value = "5 B", from = "x" }"#, "missing field `source`"),
        (r#"{ value = "5 B", source = "oracle", from = "x" }"#, "unknown variant `oracle`"),
        (r#"{ value = "5 B", source = "paper", from = "x", note = "y" }"#, "unknown field `note`"),
        ("7", "a figure such as"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn what_is_written_reads_back_the_same() {
    for text in [
        "\"4 KiB\"",
        r#"{ value = "0.2 s/GB", range = ["0.1 s/GB", "0.6 s/GB"], source = "measured", from = "a result" }"#,
        r#"{ value = "3.815 us", source = "fitted", from = "a \"cell\"" }"#,
        r#"{ value = "30 MB/s", range = ["0 B/s", "63 MB/s"], source = "given" }"#,
    ] {
        let holder = Holder { rate: read(text).unwrap() };
        let written = toml::to_string(&holder).unwrap();
        assert_eq!(toml::from_str::<Holder>(&written).unwrap(), holder, "{written}");
    }
}
