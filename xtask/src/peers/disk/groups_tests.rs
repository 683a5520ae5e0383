//! The groups of the disk tests' campaign.

use super::*;
use crate::peers::group::tests::assert_whole;

fn facts() -> Inputs {
    let time = Duration::from_millis(500);
    Inputs::most(&DiskOptions { time, file_bytes: 2 << 30, testdisk: Some("/t".into()) })
}

fn named(groups: Vec<Group>, name: &str) -> Group {
    groups.into_iter().find(|group| group.name == name).unwrap()
}

#[test]
fn claims_are_about_contestants_and_names_are_unique() {
    assert_whole(&all(&facts()));
    assert_whole(&all(&Inputs { huge_bytes: 0, ..facts() }));
    assert!(all(&facts()).iter().all(|group| group.skipped.is_none() && group.notes.is_empty()));
}

#[test]
fn without_huge_pages_that_is_said() {
    let sweep = named(all(&Inputs { huge_bytes: 4 << 20, ..facts() }), "sweep");
    assert!(sweep.notes[0].contains("4 MiB of huge pages are free"), "{:?}", sweep.notes);
    assert!(sweep.claims.iter().all(|claim| claim.to == Some("fio")));
    let sweep = named(all(&facts()), "sweep");
    assert_eq!(sweep.contestants.len(), 3);
    assert!(sweep.claims.iter().all(|claim| claim.to == Some("fio-huge")));
    assert!(sweep.contestants[2].command().contains("mmaphuge"));
}

#[test]
fn every_point_is_in_both_programs() {
    let sweep = named(all(&facts()), "sweep");
    assert_eq!(sweep.phases.len(), 18);
    assert_eq!(
        (sweep.phases[0].as_str(), sweep.phases[17].as_str()),
        ("write 64 KiB x 1", "read 4 MiB x 32")
    );
    assert_eq!(sweep.work, Work { bytes: 2 << 30, time: Duration::from_secs(9) });
    let command = sweep.contestants[0].command();
    let flags = "--sizes '64 KiB,1 MiB,4 MiB' --depths 1,8,32 --time '500 ms' --file '2 GiB'";
    assert!(command.contains(flags), "{command}");
}

#[test]
fn constant_data_is_constant_for_both() {
    let cpu = named(all(&facts()), "cpu");
    let commands: Vec<String> = cpu.contestants.iter().map(|one| one.command()).collect();
    assert!(commands[0].contains("--time '4000 ms' --duplicate 100"), "{}", commands[0]);
    assert!(commands[1].contains("--scramble_buffers=0"), "{}", commands[1]);
    assert!(commands[2].contains("--duplicate 0"), "{}", commands[2]);
    assert!(commands[3].contains("--scramble_buffers=1"), "{}", commands[3]);
}

#[test]
fn what_cannot_run_says_why() {
    let without = DiskOptions { testdisk: None, ..facts().disk };
    let groups = all(&Inputs { has_block: false, disk: without, ..facts() });
    let skipped: Vec<(&str, &String)> =
        groups.iter().filter_map(|group| Some((group.name, group.skipped.as_ref()?))).collect();
    assert_eq!(skipped.len(), 2);
    assert!(skipped[0].1.starts_with("--testdisk PROGRAM") && skipped[1].1.contains("`disk block`"));
}

#[test]
fn sizes_have_the_largest_unit_that_fits() {
    let sizes = [512, 64 << 10, 1 << 20, 4 << 30, (1 << 30) + (64 << 20)].map(label);
    assert_eq!(sizes, ["512 B", "64 KiB", "1 MiB", "4 GiB", "1088 MiB"]);
}
