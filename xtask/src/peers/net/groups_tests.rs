//! The groups of the network tests' campaign.

use super::*;
use crate::peers::group::tests::assert_whole;

#[test]
fn claims_are_about_contestants_and_without_a_cable_that_is_said() {
    let groups = all(Path::new("keepup"), &Err("no root".into()));
    assert_whole(&groups);
    let skipped: Vec<&str> =
        groups.iter().filter(|group| group.skipped.is_some()).map(|group| group.name).collect();
    assert_eq!(skipped, ["tcp-cable-1", "tcp-cable-4", "udp-safe-cable"]);
    assert!(groups.iter().filter_map(|group| group.skipped.as_ref()).all(|why| why.contains("no root")));
    let four = groups[1].contestants.iter().map(|one| one.command()).collect::<Vec<_>>();
    assert!(four[0].contains("--flows 4") && four[1].contains("-P 4") && four[2].contains("-N4"), "{four:?}");
}
