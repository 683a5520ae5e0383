//! The built-in parts against what standards and papers say, and files that cannot be read.
use proptest::prelude::*;

use super::*;
use crate::formulas::store::Direction::{self, Read, Write};

fn rate(name: &str, direction: Direction) -> f64 {
    let part = part(name).unwrap_or_else(|error| panic!("{error}"));
    part.payload_rate(direction).unwrap().unwrap_or_else(|| panic!("{name} is no matter of bytes")) / 1e6
}

#[test]
fn every_part_is_read_has_a_title_and_a_source_for_each_figure() {
    let parts = catalogue().unwrap_or_else(|error| panic!("{error}"));
    assert!(parts.len() > 80, "{}", parts.len());
    let mut names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), parts.len(), "a name is there twice");
    for part in parts {
        assert!(!part.title.is_empty() && !part.family.is_empty(), "{}", part.name);
        for (name, figure) in &part.figures {
            let is_sourced = !figure.from.is_empty() && figure.source != Source::Given;
            assert!(is_sourced, "{} {name}", part.name);
            let is_wide = figure.source != Source::Guessed || figure.has_range();
            assert!(is_wide, "a guess without a range: {} {name}", part.name);
        }
    }
}

#[test]
fn rates_that_standards_prescribe() {
    for (name, direction, published) in [
        ("fc-1g", Write, 103.3),
        ("fc-2g", Write, 206.6),
        ("fc-4g", Write, 413.0),
        ("fc-8g", Write, 826.0),
        ("fc-16g", Write, 1653.0),
        ("fc-32g", Write, 3306.0),
        ("fc-64g", Write, 6612.0),
        ("ethernet-1g", Read, 117.7),
        ("ethernet-10g", Read, 1177.0),
        ("ethernet-25g", Read, 2942.0),
        ("ethernet-40g", Read, 4707.0),
        ("ethernet-100g", Read, 11769.0),
        ("ethernet-200g", Read, 23537.0),
        ("ethernet-400g", Read, 47074.0),
        ("isa", Read, 15.0),
        ("elite-1600", Read, 136.0),
        ("pci-32-33", Read, 119.0),
        ("pci-32-33", Write, 97.0),
        ("sata-600", Read, 600.0 * 0.93),
        ("sas-2400", Read, 2400.0 * 0.92),
        ("fc-1g-loop", Write, 103.3 * 0.995),
    ] {
        let ours = rate(name, direction);
        assert!((ours / published - 1.0).abs() < 0.01, "{name}: {ours} for {published}");
    }
}

#[test]
fn pci_express_has_the_public_models_figures_within_its_range() {
    // GB/s written and read for 4 KiB, by pcie-model: it counts more link packets than there are.
    for (name, write, read) in [
        ("pcie1x8", 1.55, 1.57),
        ("pcie2x4", 1.65, 1.67),
        ("pcie3x4", 3.32, 3.37),
        ("pcie3x8", 6.62, 6.71),
        ("pcie4x4", 6.64, 6.74),
    ] {
        let part = part(name).unwrap();
        // A device that writes moves data into memory.
        for (direction, published) in [(Read, write * 1e9), (Write, read * 1e9)] {
            let ends = |link_packets: fn(&Ranged) -> f64| {
                let packets = part.figures["link_packets"].clone();
                let can = part.capability(&mut |f| if *f == packets { link_packets(f) } else { f.value });
                let can = can.unwrap();
                can.capacity / can.per_byte(direction)
            };
            assert!(ends(|f| f.high) <= published * 1.02, "{name}");
            assert!(ends(|f| f.low) >= published, "{name}");
        }
    }
}

#[test]
fn a_width_in_the_name_sets_the_lanes() {
    let ratio = rate("pcie3x8", Read) / rate("pcie3", Read);
    assert!((ratio - 8.0).abs() < 1e-9);
    assert_eq!(part("pcie3x8").unwrap().name, "pcie3x8");
    for name in ["pcie3x3", "pcie9x4", "pci-32-33x4", "x4", "pcie3x"] {
        assert!(part(name).is_err(), "{name}");
    }
    let error = part("pcie33").unwrap_err().to_string();
    assert!(error.contains("similar: pcie3"), "{error}");
}

#[test]
fn a_bad_file_says_where_it_is_bad() {
    let head = "family = \"f\"\n[part.a]\ntitle = \"t\"\nformula = \"rate\"\n[part.a.figures]\n";
    let rate = "rate = { value = \"1 MB/s\", source = \"paper\", from = \"x\" }\n";
    for (text, why) in [
        (
            format!("{head}rate = {{ value = \"5 us\", source = \"paper\", from = \"x\" }}\n"),
            "f.toml:6: part.a.figures.rate: rate of part a requires B/s, got us",
        ),
        (head.to_owned(), "f.toml:2: part.a: part a lacks the figure rate"),
        (format!("{head}{rate}[part.b]\ntitle = \"b\"\n"), "part.b: no formula"),
        (
            format!("{head}{rate}[part.b]\ntitle = \"b\"\nlike = \"c\"\n"),
            "f.toml:9: part.b.like: no part named \"c\" in this file",
        ),
        (format!("{head}{rate}[part.b]\ntitle = \"b\"\nlike = \"b\"\n"), "is circular"),
        (format!("{head}{rate}colour = 3\n"), "f.toml:7: part.a.figures.colour"),
        (format!("{head}{rate}[part.b]\ntitle = \"b\"\nformula = \"magic\"\n"), "unknown variant `magic`"),
        ("family = ".to_owned(), "f.toml:1"),
    ] {
        let error = parse_parts(&text, "f.toml").unwrap_err().to_string();
        assert!(error.contains(why), "{text}\n{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_survived(text in ".*") {
        let _ = parse_parts(&text, "any");
    }

    #[test]
    fn a_damaged_file_is_survived(
        file in 0..EMBEDDED.len(),
        at in 0.0..1.0f64,
        with in "[ -~]{0,4}",
        cut in 0usize..9,
    ) {
        let text = EMBEDDED[file].1;
        let start = (at * text.len() as f64) as usize;
        let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let end = (start + cut..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        if let Ok(parts) = parse_parts(&format!("{}{with}{}", &text[..start], &text[end..]), "damaged") {
            for part in parts {
                prop_assert!(part.capability(&mut |figure| figure.value).is_ok());
            }
        }
    }
}
