//! The groups of the replay's campaign.

use super::*;
use crate::peers::group::tests::assert_whole;

#[test]
fn claims_are_about_contestants_and_both_have_the_same_depth() {
    let groups = all(Path::new("keepup"), Path::new("/t"));
    assert_whole(&groups);
    assert_eq!(groups.len(), 15);
    for group in &groups[5..14] {
        let commands: Vec<String> = group.contestants.iter().map(|one| one.command()).collect();
        let depth = group.name.rsplit('-').next().unwrap();
        assert!(commands[0].contains(&format!("--mode afap --depth {depth} ")), "{commands:?}");
        assert!(
            commands[1..].iter().all(|line| line.contains(&format!("--iodepth={depth} "))),
            "{commands:?}"
        );
        assert!(commands.iter().all(|line| line.contains("/t/")), "{commands:?}");
    }
    assert_eq!(groups[4].work.bytes, FILE_BYTES);
    assert_eq!(groups[9].contestants.len(), 3);
}
