//! Predictions for small machines: limits, sufficient resources, memory for stalls.
use keepup_error::Diagnostic as _;
use proptest::prelude::*;

use super::*;
use crate::machine::{Machine, machine};

fn ask() -> Ask {
    Ask {
        path: None,
        operation_bytes: None,
        event_bytes: None,
        required_bytes_per_second: None,
        headroom: 1.0,
        outstanding: None,
        stall_seconds: Vec::new(),
        stall_every_seconds: None,
        buffer_bytes: None,
        samples: 100,
        seed: 1,
    }
}

/// Four disks of 20 MB/s on a link of 100 MB/s, and a core with a cost of 2 s per GB.
const SMALL: &str = r#"
name = "small"
title = "a small machine"
main = "record"

[resource.disks]
formula = "rate"
count = 4
set = { rate = { value = "20 MB/s", range = ["18 MB/s", "22 MB/s"], source = "guessed", from = "a test" } }

[resource.link]
formula = "rate"
shared = true
set = { rate = { value = "100 MB/s", source = "guessed", from = "a test" } }

[resource.cores]
formula = "thread"
count = 2
stall = { value = "2 s", source = "measured", from = "a test" }

[path.record]
about = "from the network to disks"
direction = "write"
operation = "1 MB"

[[path.record.stage]]
on = "link"

[[path.record.stage]]
on = "disks"

[[path.record.stage]]
on = "cores"
per_byte = { value = "2 s/GB", source = "measured", from = "a test" }
"#;

fn small() -> Machine {
    Machine::parse(SMALL, "small.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_small_machine_is_told_with_its_limits_and_cores() {
    let found = predict(&small(), &ask(), "").unwrap();
    assert_eq!(found.bytes_per_second, 80e6);
    let (lower, upper) = (found.lower_bytes_per_second.unwrap(), found.upper_bytes_per_second.unwrap());
    assert!((72e6..78e6).contains(&lower) && (82e6..=88e6).contains(&upper), "{lower} {upper}");
    let names: Vec<&str> = found.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["disks", "link", "cores"]);
    assert!((found.parts[0].gain_of_a_tenth.unwrap() - 0.1).abs() < 1e-9);
    // 0.08 GB/s of 2 s/GB.
    assert!((found.cores_busy.unwrap() - 0.16).abs() < 1e-9);
    assert_eq!(found.buffers[0].bytes, 160e6);
    assert_eq!(found.buffers[0].recovery_seconds, None, "it runs at its limit");
}

#[test]
fn sufficient_counts_are_found() {
    let wanted = |rate: f64| {
        let asked = Ask { required_bytes_per_second: Some(rate), ..ask() };
        predict(&small(), &asked, "").unwrap()
    };
    let found = wanted(90e6);
    let enough = found.enough.unwrap();
    assert_eq!(enough.hosts, Some(2));
    let more: Vec<_> = enough.more.iter().map(|more| (more.name.as_str(), more.count, more.needed)).collect();
    assert_eq!(more, [("disks", 4, Some(5))]);
    assert!((found.headroom.unwrap() - 80.0 / 90.0).abs() < 1e-9);
    // All hosts share the link.
    let enough = wanted(150e6).enough.unwrap();
    assert_eq!(enough.hosts, None);
    assert_eq!(enough.more.iter().find(|more| more.name == "link").unwrap().needed, Some(2));
    let found = wanted(40e6);
    assert_eq!(found.enough.unwrap().hosts, Some(1));
    // 2 s of 40 MB/s, drained by the other 40 MB/s in 2 s.
    assert_eq!((found.buffers[0].bytes, found.buffers[0].recovery_seconds), (80e6, Some(2.0)));
}

#[test]
fn events_are_those_of_the_detector_whatever_the_operation_of_the_path() {
    let with =
        |event_bytes: f64| predict(&small(), &Ask { event_bytes: Some(event_bytes), ..ask() }, "").unwrap();
    let (small_events, frames) = (with(250e3), with(16e6));
    assert_eq!((small_events.events_per_second, frames.events_per_second), (Some(320.0), Some(5.0)));
    // The path moves blocks of 1 MB, whatever is in them.
    assert_eq!((small_events.operations_per_second, frames.operations_per_second), (80.0, 80.0));
    assert_eq!(predict(&small(), &ask(), "").unwrap().events_per_second, None);
}

#[test]
fn utilisation_at_the_required_rate_grows_beyond_all() {
    let at = |required: f64| {
        let asked = Ask { required_bytes_per_second: Some(required), ..ask() };
        let parts = predict(&small(), &asked, "").unwrap().parts;
        parts
            .iter()
            .map(|part| (part.name.clone(), part.utilisation_at_required.unwrap()))
            .collect::<Vec<_>>()
    };
    for (required, factor) in [(40e6, 1.0), (160e6, 4.0)] {
        let wanted = [("disks", 0.5), ("link", 0.4), ("cores", 0.04)];
        for ((name, found), (wanted_name, wanted)) in at(required).into_iter().zip(wanted) {
            assert_eq!(name, wanted_name);
            assert!((found - wanted * factor).abs() < 1e-9, "{name} at {required}: {found}");
        }
    }
    let without = predict(&small(), &ask(), "").unwrap();
    assert!(without.parts.iter().all(|part| part.utilisation_at_required.is_none()));
}

#[test]
fn operations_that_wait_for_each_other_fill_nothing() {
    let with =
        |outstanding: u32| predict(&small(), &Ask { outstanding: Some(outstanding), ..ask() }, "").unwrap();
    // 10 ms on the link, 50 ms on one of four disks, 2 ms on one of two cores.
    let one = with(1);
    assert!((one.bytes_per_second / (1e6 / 0.062) - 1.0).abs() < 1e-9, "{one:#?}");
    let disks = one.parts.iter().find(|part| part.name == "disks").unwrap();
    assert!((disks.utilisation - one.bytes_per_second / 80e6).abs() < 1e-9, "{disks:?}");
    let (few, many) = (with(4).bytes_per_second, with(200).bytes_per_second);
    assert!(one.bytes_per_second < few && few < many && (many / 80e6 - 1.0).abs() < 0.01, "{few} {many}");
}

#[test]
fn stalls_that_come_again_are_simulated() {
    let with = |every: f64, buffer: f64| {
        let asked = Ask {
            required_bytes_per_second: Some(40e6),
            stall_every_seconds: Some(every),
            buffer_bytes: Some(buffer),
            ..ask()
        };
        predict(&small(), &asked, "").unwrap().buffers[0].clone()
    };
    // Data of 2 s is drained after 2 s more: the next stall finds the memory empty.
    let found = with(3.0, 40e6);
    assert!((found.repeated_bytes.unwrap() / 80e6 - 1.0).abs() < 0.02, "{found:#?}");
    // Half of the data during a stall is lost: 40 of 200 MB.
    assert!((found.lost_share.unwrap() - 0.2).abs() < 0.01, "{found:#?}");
    assert_eq!(with(3.0, 90e6).lost_share, Some(0.0));
    // Two thirds of the time in stalls leave 27 MB/s.
    assert_eq!(with(1.0, 1e9).repeated_bytes, None);
}

#[test]
fn every_number_has_its_source_and_its_part_of_the_scatter() {
    let inputs = assumptions(&small(), &ask()).unwrap();
    let disks = inputs.iter().find(|one| one.name == "disks.rate").unwrap();
    assert_eq!((disks.source.as_str(), disks.from.as_str()), ("guessed", "a test"));
    assert!((disks.share.unwrap() - 1.0).abs() < 1e-9);
    let cores = inputs.iter().find(|one| one.name == "record on cores: per_byte").unwrap();
    assert_eq!((cores.source.as_str(), cores.share), ("measured", None));
}

#[test]
fn sweeps_are_read() {
    let read = |text: &str| text.parse::<Sweep>();
    assert_eq!(read("disks=1..3").unwrap().values, ["1", "2", "3"]);
    assert_eq!(read("disks=2..=2").unwrap().values, ["2"]);
    let rates = read("disks.rate=10MB/s, 20MB/s").unwrap();
    assert_eq!(
        (rates.axis.as_str(), &rates.values[..]),
        ("disks.rate", &["10MB/s".into(), "20MB/s".into()][..])
    );
    for bad in ["disks", "=1..2", "disks=3..1", "disks=a..b", "disks=1,,2", "disks=", "disks=0..99999"] {
        let why = read(bad).unwrap_err();
        assert!(why.hint().unwrap().starts_with("such as"), "{bad}: {why}");
    }
}

#[test]
fn the_papers_disks_have_their_knees() {
    let mut rates = Vec::new();
    for (label, setting) in "disks=1..8".parse::<Sweep>().unwrap().settings() {
        let mut changed = machine("papers/romanis").unwrap();
        changed.with(&setting).unwrap();
        rates.push((label.to_owned(), predict(&changed, &ask(), label).unwrap()));
    }
    assert!(rates[..5].iter().all(|(_, found)| found.parts[0].name == "disks"));
    assert!(rates[5..].iter().all(|(_, found)| found.parts[0].name != "disks"));
}

proptest! {
    #[test]
    fn any_sweep_is_read_or_refused(text in ".{0,40}") {
        if let Ok(sweep) = text.parse::<Sweep>() {
            prop_assert!(!sweep.values.is_empty());
        }
    }

    #[test]
    fn enough_is_enough_and_one_less_is_not(wanted in 1e6..1e9f64) {
        let mut unshared = small();
        unshared.resource.get_mut("link").unwrap().shared = false;
        let asked = Ask { required_bytes_per_second: Some(wanted), samples: 0, ..ask() };
        let hosts = predict(&unshared, &asked, "").unwrap().enough.unwrap().hosts.unwrap();
        let with = |hosts: u32| {
            predict(&Machine { hosts, ..unshared.clone() }, &asked, "").unwrap().bytes_per_second
        };
        prop_assert!(with(hosts) >= wanted);
        prop_assert!(hosts == 1 || with(hosts - 1) < wanted);
    }
}
