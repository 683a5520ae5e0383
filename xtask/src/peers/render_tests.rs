//! The document of a made-up campaign.

use std::path::Path;

use super::*;
use crate::peers::claims::judge;
use crate::peers::contestant::Run;
use crate::peers::fio::Fio;
use crate::peers::groups;

fn outcome(name: &str, seconds: &[f64]) -> Outcome {
    let run = |&seconds: &f64| {
        Some(Run {
            bytes: 1_000_000_000,
            seconds,
            cpu_ns: 100_000_000,
            cpu_before_ns: Some(0),
            ..Run::default()
        })
    };
    Outcome {
        name: name.to_owned(),
        command: format!("`{name} -x`"),
        runs: seconds.iter().map(run).collect(),
        ..Outcome::default()
    }
}

fn section() -> Section {
    let group = groups::all(Path::new("keepup"), Fio::FIRST).swap_remove(0);
    let outcomes = vec![
        outcome("keepup", &[0.5, 0.5, 0.5]),
        Outcome {
            runs: vec![None],
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
    Section { group, outcomes, verdicts, notes: vec!["a note".to_owned()] }
}

#[test]
fn every_contestant_has_its_row() {
    let text = document(&[("kernel".to_owned(), "6.1".to_owned())], &[section()], 2_000_000_000, 3);
    let lines: Vec<&str> = text.lines().collect();
    for expected in [
        "2.00 GB and 3 rounds each, over the loopback.",
        "| kernel | 6.1 |",
        "- keepup: `keepup -x`",
        "| keepup | 2000 [2000, 2000] | - | 0.100 [0.100, 0.100] | 0.100 [0.100, 0.100] | - | 0 [0, 0] | 3 |",
        "| iperf3 | - | - | - | - | - | - | 0, 1 failed |",
        "| mbuffer | not installed (apt-get install mbuffer) | - | - | - | - | - | 0 |",
        "- a note",
        "- iperf3, round 1: no room",
    ] {
        assert!(lines.contains(&expected), "{expected}\n{text}");
    }
    let widths: Vec<usize> =
        lines.iter().filter(|line| line.starts_with("| fio")).map(|l| l.matches('|').count()).collect();
    assert_eq!(widths, [9]);
}

#[test]
fn every_goal_has_its_verdict() {
    let text = document(&[], &[section()], 2_000_000_000, 3);
    for expected in [
        "| durable rate: keepup to fio | 1.00 [0.80, 2.00] | 3 | >= 0.95 | met |",
        "| durable rate: keepup to iperf3 | no run succeeded | 0 | >= 1.20 | - |",
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
