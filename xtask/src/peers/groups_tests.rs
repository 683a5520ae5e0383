//! The groups of the recorder's campaign.

use super::*;
use crate::peers::group::tests::assert_whole;

#[test]
fn claims_are_about_contestants_and_names_are_unique() {
    assert_whole(&all(Path::new("keepup"), Fio::FIRST, 1));
}
