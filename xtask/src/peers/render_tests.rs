//! The document of a made-up campaign.

use std::path::Path;

use super::*;
use crate::peers::claims::judge;
use crate::peers::contestant::Run;
use crate::peers::fio::Fio;
use crate::peers::groups;

fn outcome(name: &str, seconds: &[f64]) -> Outcome {
    let run = |&seconds: &f64| {
        vec![Run {
            bytes: 1_000_000_000,
            seconds,
            cpu_ns: Some(100_000_000),
            cpu_before_ns: Some(0),
            resident_bytes_max: Some(0),
            ..Run::default()
        }]
    };
    Outcome {
        name: name.to_owned(),
        command: format!("`{name} -x`"),
        runs: seconds.iter().map(run).collect(),
        ..Outcome::default()
    }
}

fn head() -> Head {
    Head { title: "A campaign", what: "Much of it".to_owned(), method: "- By hand." }
}

fn section() -> Section {
    let mut group = groups::all(Path::new("keepup"), Fio::FIRST, 1).swap_remove(0);
    let outcomes = vec![
        outcome("keepup", &[0.5, 0.5, 0.5]),
        Outcome {
            runs: vec![Vec::new()],
            failures: vec!["round 1: no\nroom".to_owned()],
            ..outcome("iperf3", &[])
        },
        Outcome {
            missing: Some("not installed (apt-get install mbuffer)".to_owned()),
            ..outcome("mbuffer", &[])
        },
        outcome("fio", &[0.4, 0.5, 1.0]),
    ];
    let judged = |claim: &Claim| Some((claim.clone(), judge(claim, &outcomes)?));
    let verdicts = group.claims.iter().filter_map(judged).collect();
    group.notes.push("a note".to_owned());
    Section { group, outcomes, verdicts }
}

#[test]
fn every_contestant_has_its_row() {
    let text = document(&head(), &[("kernel".to_owned(), "6.1".to_owned())], &[section()]);
    let lines: Vec<&str> = text.lines().collect();
    for expected in [
        "# A campaign",
        "Much of it.",
        "| kernel | 6.1 |",
        "- keepup: `keepup -x`",
        "| keepup | 2000 [2000, 2000] | - | 0.100 [0.100, 0.100] | 0.100 [0.100, 0.100] | - | 0 [0, 0] | 3 |",
        "| iperf3 | - | - | - | - | - | - | 0 of 1 |",
        "| mbuffer | not installed (apt-get install mbuffer) | - | - | - | - | - | 0 |",
        "- a note",
        "- iperf3, round 1: no room",
        "- By hand.",
    ] {
        assert!(lines.contains(&expected), "{expected}\n{text}");
    }
    let widths: Vec<usize> =
        lines.iter().filter(|line| line.starts_with("| fio")).map(|l| l.matches('|').count()).collect();
    assert_eq!(widths, [9]);
}

#[test]
fn every_goal_has_its_verdict() {
    let text = document(&head(), &[], &[section()]);
    for expected in [
        "| durable rate: keepup to fio | 1.00 [0.80, 2.00] | 3 | >= 0.95 | met |",
        "| durable rate: keepup to iperf3 | not measured | 0 | >= 1.20 | - |",
        "| durable rate: keepup to mbuffer | not installed (apt-get install mbuffer) | 0 | >= 1.20 | - |",
        "| CPU s/GB, whole process: keepup | 0.100 [0.100, 0.100] | 3 | <= 0.20 | met |",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\n{text}");
    }
    assert!(!text.contains("mbuffer-direct"), "it did not take part");
}

#[test]
fn one_run_is_shown_without_an_interval() {
    assert_eq!(shown(&Spread { median: 1.256, interval: None, count: 1 }, 2), "1.26");
}

#[test]
fn phases_have_rows_of_their_own() {
    let of = |phase: &str, seconds| Run {
        phase: phase.to_owned(),
        bytes: 1_000_000_000,
        seconds,
        ..Run::default()
    };
    let runs = vec![vec![of("write", 1.0), of("read", 2.0)], vec![of("write", 1.0)]];
    let outcomes = vec![Outcome { runs, ..outcome("keepup", &[]) }];
    let group = section().group;
    let phases = ["write", "read"].map(str::to_owned).to_vec();
    let claim = crate::peers::claims::figure("rate", Figure::Rate, "keepup", Some(Goal::Within(0.03)));
    let claim = claim.in_phase("read");
    let verdict = judge(&claim, &outcomes).unwrap();
    let verdicts = vec![(claim, verdict)];
    let group = Group { phases, figures: vec![Figure::Rate], rate: "MB/s", ..group };
    let text = document(&head(), &[], &[Section { group, outcomes, verdicts }]);
    for expected in [
        "| phase | contestant | MB/s | runs |",
        "| write | keepup | 1000 [1000, 1000] | 2 |",
        "| read | keepup | 500 | 1 of 2 |",
        "| rate, read: keepup | 500 | 1 | 0.97 to 1.03 | not met |",
    ] {
        assert!(text.lines().any(|line| line == expected), "{expected}\n{text}");
    }
}

#[test]
fn a_group_that_did_not_run_says_why() {
    let group = Group { skipped: Some("no\nprogram".to_owned()), ..section().group };
    let text = document(&head(), &[], &[Section { group, outcomes: Vec::new(), verdicts: Vec::new() }]);
    assert!(text.contains("## One TCP stream to a disk\n\nSKIPPED: no program\n"), "{text}");
}
