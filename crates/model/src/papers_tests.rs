//! Every published number is there, in its unit; what follows from a paper's numbers is what it should be.
use keepup_error::Cause;

use super::*;
use crate::error::ModelError;

/// Published numbers of a paper by the id of their rows, in the order of the file; a range has both ends,
/// a textual one has none.
type Numbers<'a> = &'a [(&'a str, &'a [f64])];

const PUBLISHED: [(&str, Numbers<'_>); 5] = [
    (
        "esrf-2007",
        &[
            ("E1", &[102.0, 105.0, 96.0, 171.0, 99.0, 109.0, 108.0, 173.0]),
            ("E2", &[128.0, 141.0, 134.0, 74.0, 89.0, 95.0, 94.0, 71.0]),
            ("E3", &[100.0, 116.0, 96.0, 93.0, 93.0, 113.0, 98.0, 80.0]),
            ("E4", &[109.0, 120.0, 101.0, 136.0, 119.0, 120.0, 101.0, 130.0]),
            ("E5", &[142.0, 142.0, 124.0, 178.0, 138.0, 138.0, 124.0, 175.0]),
            ("E6", &[138.0, 141.0, 119.0, 168.0, 146.0, 142.0, 120.0, 166.0]),
            ("E7", &[121.0, 116.0, 100.0, 155.0, 111.0, 122.0, 96.0, 146.0]),
            ("E8", &[97.0, 101.0, 101.0, 126.0]),
            ("E9", &[4.0, 2.0]),
            ("E11", &[4.0, 8.0]),
        ],
    ),
    (
        "cern-vme",
        &[
            ("C1", &[3.1, 3.2, 3.6, 4.2]),
            ("C2", &[2.33, 2.32]),
            ("C3", &[1.0, 3.6, 4.2, 3.1, 2.3]),
            ("C4", &[2.42, 1.56, 0.47, 8.11]),
            ("C5", &[2.42, 1.56, 0.35, 10.89]),
            ("C6", &[5.0, 7.0, 3.0, 1.33, 4.0, 0.48, 2.0, 1.3]),
            ("C7", &[2.0, 1800.0]),
        ],
    ),
    (
        "tweakers-pci",
        &[
            ("T1", &[15.0, 133.0, 75.0, 4.0, 5.5, 12.0]),
            ("T2", &[136.0]),
            ("T3", &[32.0]),
            ("T4", &[25.0, 45.0]),
            ("T5", &[]),
        ],
    ),
    (
        "cdf-csl",
        &[
            ("K1", &[120.0, 60.0]),
            ("K2", &[63.0, 139.0, 64.0, 112.0, 63.0, 111.0]),
            ("K3", &[65.0, 38.0, 63.0, 41.0, 63.0, 41.0]),
            ("K4", &[20.0]),
            ("K5", &[]),
            ("K6", &[50.0, 60.0, 112.0]),
            ("K7", &[20.0, 30.0, 40.0]),
            ("K8", &[57.0, 4.0, 1408.0, 1600.0]),
            ("K9", &[3804.0, 121.0, 2.0, 8146.0]),
            ("K10", &[]),
        ],
    ),
    (
        "romanis",
        &[
            ("F1", &[106.25, 6.0, 127.0]),
            ("F2", &[80.0, 120.0, 1_048_576.0]),
            ("F3", &[]),
            ("F4", &[1.2, 100.0, 1.0]),
            ("F5", &[1024.0, 2112.0]),
            ("F6", &[54.0, 18.0, 2.0, 508.0, 1.6, 800.0]),
        ],
    ),
];

/// What follows from each claim's numbers, and whether that contradicts it.
const FOLLOWS: [(&str, &str, f64, bool); 45] = [
    ("esrf-2007", "E9-gen1", 8.0, true),
    ("esrf-2007", "E9-gen2", 4.0, true),
    ("esrf-2007", "E9-full", 117.9, false),
    ("esrf-2007", "x16", 4.0, true),
    ("esrf-2007", "pci-x-533", 4.27, true),
    ("esrf-2007", "pci", 133.0, false),
    ("esrf-2007", "E8-single", 76.3, false),
    ("esrf-2007", "E8-block", 79.4, false),
    ("esrf-2007", "E8-read", 99.1, false),
    ("cern-vme", "C7", 966.0, true),
    ("cern-vme", "C7-halves", 1932.0, true),
    ("cern-vme", "C7-ppc", 3077.0, false),
    ("cern-vme", "C4-single", 1.576, false),
    ("cern-vme", "C4-block", 8.116, false),
    ("cern-vme", "C5-single", 1.576, false),
    ("cern-vme", "C5-dma", 10.90, false),
    ("cern-vme", "C6-block", 5.15, false),
    ("cern-vme", "C6-dma", 6.9, false),
    ("cern-vme", "C6-arrays", 2.33, true),
    ("cern-vme", "C6-l865", 1.292, false),
    ("cern-vme", "C6-l865-table", 1.33, false),
    ("cern-vme", "C6-half", 2.083, false),
    ("cern-vme", "C6-one", 1.238, false),
    ("cern-vme", "C6-ppc", 3.9, false),
    ("tweakers-pci", "T1-pci", 133.0, false),
    ("tweakers-pci", "T1-random", 4.2, false),
    ("tweakers-pci", "T4", 50.4, false),
    ("cdf-csl", "K6-line", 125.0, false),
    ("cdf-csl", "K6-payload", 117.7, true),
    ("cdf-csl", "K6-pc", 112.2, false),
    ("cdf-csl", "K7-serial", 24.0, false),
    ("cdf-csl", "K7-write", 120.0, false),
    ("cdf-csl", "K8-room", 57.1, false),
    ("cdf-csl", "K8-machines", 3.0, false),
    ("romanis", "F1-9", 2.03, false),
    ("romanis", "F1-36", 8.13, false),
    ("romanis", "F1-127", 28.7, false),
    ("romanis", "F2-size", 1_048_576.0, false),
    ("romanis", "F2-commands", 2.0, false),
    ("romanis", "F4-cycles", 2.1, false),
    ("romanis", "F5-tl", 100.4, false),
    ("romanis", "F5-isp", 103.3, false),
    ("romanis", "F6-tl", 99.6, false),
    ("romanis", "F6-isp", 97.0, false),
    ("romanis", "F6-disks", 18.0, true),
];

/// The figures of one id.
fn figures_of<'a>(paper: &'a Paper, id: &'a str) -> impl Iterator<Item = &'a PublishedFigure> {
    paper.figures.iter().filter(move |figure| figure.id == id)
}

#[test]
fn every_published_number_is_there() {
    assert_eq!(PUBLISHED.len(), paper_names().count());
    for (name, rows) in PUBLISHED {
        let paper = paper(name).unwrap();
        assert_eq!(paper.name, name);
        for (id, wanted) in rows {
            let mut found = Vec::new();
            for figure in figures_of(&paper, id) {
                match figure.published().unwrap() {
                    Published::Value(number) | Published::AtLeast(number) => found.push(number),
                    Published::Range(low, high) => found.extend([low, high]),
                    Published::Shape(_) => {}
                }
            }
            assert_eq!(&found, wanted, "{name} {id}");
            assert!(figures_of(&paper, id).next().is_some(), "{name} {id}");
        }
    }
}

#[test]
fn what_follows_is_computed_and_only_large_differences_contradict() {
    for (name, id, wanted, is_contradicted) in FOLLOWS {
        let paper = paper(name).unwrap();
        let claim = paper.claim(id).unwrap_or_else(|| panic!("{name} has no claim {id}"));
        let found = claim.follows().unwrap();
        assert!((found / wanted - 1.0).abs() < 0.015, "{name} {id}: {found}, not {wanted}");
        assert_eq!(claim.is_contradicted(), is_contradicted, "{name} {id}: {}", claim.arithmetic());
    }
    let known = |name: &str, id: &str| FOLLOWS.iter().any(|row| (row.0, row.1) == (name, id));
    for name in paper_names() {
        for claim in paper(name).unwrap().claims {
            let is_four_loops = claim.id.starts_with("F6-four");
            assert!(known(name, &claim.id) || is_four_loops, "{name} {} is not tested", claim.id);
            assert!(!is_four_loops || (47.9..50.1).contains(&claim.follows().unwrap()), "{claim:?}");
        }
    }
}

#[test]
fn the_arithmetic_can_be_read() {
    let text = |name: &str, id: &str| paper(name).unwrap().claim(id).unwrap().arithmetic();
    assert_eq!(text("cern-vme", "C7"), "2 ms / (2.42 us - 0.35 us) = 966 words, not 1800");
    assert_eq!(text("cern-vme", "C4-single"), "4 B / 2.42 us = 1.58 MiB/s, claimed 1.56");
    assert_eq!(text("cern-vme", "C6-ppc"), "mean of 3.6 and 4.2 / 1 = 3.9 times, claimed 4");
    assert_eq!(text("esrf-2007", "x16"), "16 x 2.5 GT/s x 8/10 / 8 = 4 GB/s, not 5");
    assert_eq!(text("esrf-2007", "pci-x-533"), "64 bit / 8 x 533.33 MHz = 4.27 GB/s, not 8");
    assert_eq!(
        text("esrf-2007", "E9-gen1"),
        "1236 MB/s of payload / 250 MB/s = 4.95, rounded up to 1, 2, 4, 8 or 16 = 8 lanes, not 4"
    );
    assert_eq!(
        text("cdf-csl", "K8-machines"),
        "80 MB/s / 30 MB/s, rounded up = 3, claimed 4 (assuming that no machine is kept as a spare)"
    );
    assert_eq!(text("romanis", "F1-9"), "9 x 6 x 40 bit / 1.0625 Gbit/s = 2.03 us");
}

#[test]
fn units_become_those_that_are_measured_in() {
    let paper = paper("esrf-2007").unwrap();
    let first = figures_of(&paper, "E1").next().unwrap();
    assert_eq!((first.value, first.printed.as_str(), first.unit.text()), (Some(102.0), "MB/s", "MiB/s"));
    assert_eq!(first.in_base(), Some(102.0 * 1_048_576.0));
    let mb = PaperUnit::MebibytesPerSecond.convert(102.0, PaperUnit::MegabytesPerSecond).unwrap();
    assert!((mb - 106.954_752).abs() < 1e-9, "{mb}");
    assert_eq!(PaperUnit::GigabitsPerSecond.convert(1.6, PaperUnit::MegabytesPerSecond), Some(200.0));
    assert_eq!(PaperUnit::Milliseconds.convert(2.0, PaperUnit::Microseconds).map(f64::round), Some(2000.0));
    assert_eq!(PaperUnit::Words.convert(1.0, PaperUnit::Lanes), None, "they cannot be compared");
    assert_eq!(PaperUnit::MegabytesPerSecond.convert(1.0, PaperUnit::Bytes), None);
}

#[test]
fn what_was_lost_is_not_called_reliable() {
    for name in paper_names() {
        for figure in paper(name).unwrap().figures {
            let is_lost = figure.note.as_deref().is_some_and(|note| note.contains("lost"));
            assert!(!is_lost || !figure.reliable, "{name}: {figure:?}");
            assert!(!figure.digitised, "no number was read from a chart");
        }
    }
}

#[test]
fn papers_can_be_written_and_read_again() {
    for name in paper_names() {
        let paper = paper(name).unwrap();
        let text = serde_json::to_string(&paper).unwrap();
        assert_eq!(serde_json::from_str::<Paper>(&text).unwrap(), paper);
    }
}

#[test]
fn a_paper_that_cannot_be_is_refused_with_its_place() {
    let figure = "[[figure]]\nid = \"A\"\nplace = \"1\"\nsystem = \"s\"\ncondition = \"\"\n\
                  quantity = \"rate\"\nprinted = \"MB/s\"\nunit = \"MB/s\"\n";
    let claim = "[[claim]]\nid = \"A\"\nplace = \"1\"\nsays = \"x\"\nunit = \"MB/s\"\n[claim.formula]\n";
    let head = "name = \"a\"\ntitle = \"b\"\npublished = \"c\"\n";
    let good =
        format!("{head}{figure}value = 1.0\n{claim}kind = \"ethernet_line\"\nethernet_gbit_per_s = 1\n");
    parse(&good, "a.toml").unwrap();
    let cases = [
        (head.to_owned(), "no figures"),
        (format!("{head}{figure}"), "exactly one of"),
        (format!("{head}{figure}value = 1.0\nat_least = 1.0\n"), "exactly one of"),
        (format!("{head}{figure}range = [2.0, 1.0]\n"), "is empty"),
        (format!("{head}{figure}value = -1.0\n"), "not positive"),
        (format!("{head}{figure}value = 1.0\n{figure}value = 2.0\n"), "duplicate"),
        (format!("{head}{figure}value = 1.0\nspeed = 1\n"), "speed"),
        (good.replace("unit = \"MB/s\"\n[claim", "unit = \"words\"\n[claim"), "the claim in words"),
        (good.replace("\"ethernet_line\"", "\"wish\""), "wish"),
        (good.replace("_per_s = 1", "_per_s = 0"), "invalid result"),
        (good.replace("_per_s = 1", "_per_s = 1\nmtu_bytes = 1500"), "mtu_bytes"),
    ];
    for (text, reason) in cases {
        let error = parse(&text, "a.toml").unwrap_err();
        assert!(
            error.to_string().contains("a.toml") && error.to_string().contains(reason),
            "{reason}: {error}"
        );
    }
}

#[test]
fn similar_names_are_suggested() {
    let error = paper("cern-vm").unwrap_err();
    assert!(matches!(&error, ModelError::Unknown { close, .. } if close == &["cern-vme"]), "{error}");
    assert!(Cause::of(&paper("nature").unwrap_err()).to_text().contains("esrf-2007, romanis"));
}
