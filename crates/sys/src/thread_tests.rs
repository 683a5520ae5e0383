//! Limits of a process.
use super::*;

#[test]
fn a_descriptor_limit_is_raised_as_far_as_allowed_and_never_lowered() {
    let limit = |current: Option<u64>, maximum: Option<u64>| Rlimit { current, maximum };
    let low = limit(Some(1_024), Some(524_288));
    for (from, wanted, expected) in [
        (low, 8_192, limit(Some(8_192), Some(524_288))),
        (low, 64, low),
        (low, u64::MAX, limit(Some(524_288), Some(524_288))),
        (limit(Some(256), Some(512)), 8_192, limit(Some(512), Some(512))),
        (limit(Some(256), None), 8_192, limit(Some(8_192), None)),
        (limit(None, None), 8_192, limit(None, None)),
    ] {
        let raised = raised(from, wanted);
        assert_eq!((raised.current, raised.maximum), (expected.current, expected.maximum), "{wanted}");
    }
}

#[test]
fn the_limit_of_this_process_is_raised_by_no_more_than_wanted() {
    let before = getrlimit(Resource::Nofile);
    let Some(current) = before.current.filter(|&current| Some(current) != before.maximum) else {
        return println!("SKIPPED: the descriptor limit is at its maximum");
    };
    raise_descriptor_limit_to(current + 1);
    assert_eq!(getrlimit(Resource::Nofile).current, Some(current + 1));
}
