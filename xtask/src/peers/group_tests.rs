//! What --only leaves of groups.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::peers::fio::Fio;
use crate::peers::groups;

fn groups() -> Vec<Group> {
    groups::all(Path::new("keepup"), Fio::FIRST, 1)
}

/// Fails when a claim is about somebody or something that is not in its group, or a name is there twice.
pub(crate) fn assert_whole(groups: &[Group]) {
    let mut seen = BTreeSet::new();
    for group in groups {
        let names: Vec<String> = group.contestants.iter().map(|one| one.name().to_owned()).collect();
        for claim in &group.claims {
            for about in std::iter::once(claim.of).chain(claim.to) {
                assert!(names.iter().any(|name| name == about), "{}: {about}", group.name);
            }
            assert!(group.phases.contains(&claim.phase), "{}: {}", group.name, claim.phase);
        }
        assert!(group.work.bytes > 0 || !group.work.time.is_zero(), "{}", group.name);
        assert!(seen.insert(group.name.to_owned()));
        names.into_iter().for_each(|name| assert!(seen.insert(name)));
    }
}

fn selected(only: &[&str]) -> Vec<(&'static str, Vec<String>)> {
    let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
    let groups = select(groups(), &only).unwrap();
    let names = |group: &Group| group.contestants.iter().map(|one| one.name().to_owned()).collect();
    groups.iter().map(|group| (group.name, names(group))).collect()
}

#[test]
fn only_leaves_whole_groups_or_single_contestants() {
    assert_eq!(selected(&[]).len(), 4);
    assert_eq!(selected(&["small"]), [("small", vec!["small-null".to_owned(), "small-volume".to_owned()])]);
    let expected =
        [("volume", vec!["keepup".to_owned(), "fio".to_owned()]), ("path", vec!["iperf3-drop".to_owned()])];
    assert_eq!(selected(&["fio", "keepup", "iperf3-drop"]), expected);
}

#[test]
fn an_unknown_name_is_answered_with_those_that_are_known() {
    let why = select(groups(), &["dd".to_owned()]).map(|_| ()).unwrap_err();
    assert!(why.starts_with("--only dd: ") && why.contains("mbuffer-direct"), "{why}");
}
