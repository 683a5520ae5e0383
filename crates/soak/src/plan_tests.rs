//! Burn-in modes, digests, and the estimate of bytes written.
use std::collections::BTreeSet;

use super::*;

fn plan(mode: Mode) -> SoakPlan {
    SoakPlan {
        mode,
        digest: DigestKind::Blake3,
        volumes: vec!["a".into(), "b".into()],
        references: [1000, 5000].map(|bytes| ReferencePlan::Made { bytes }).into(),
        stamped_bytes: 8192,
    }
}

#[test]
fn a_burn_in_goes_through_every_way() {
    let labelled = |way: TurnMode| format!("{} {way}", way.stamps);
    let ways: BTreeSet<String> =
        (0..48).map(|round| labelled(plan(Mode::BurnIn).turn_mode(round, true))).collect();
    // Two kinds, two write, flush and read modes each, three sizes.
    assert_eq!(ways.len(), 48);
    let ways: BTreeSet<String> =
        (48..96).map(|round| labelled(plan(Mode::BurnIn).turn_mode(round, false))).collect();
    assert_eq!(ways.len(), 12, "without direct I/O there are fewer");
    assert!(ways.iter().all(|way| !way.contains("directly")), "{ways:?}");
    for (mode, stamps) in [(Mode::Copy, false), (Mode::Stamp, true)] {
        let ways: BTreeSet<String> =
            (0..48).map(|round| labelled(plan(mode).turn_mode(round, true))).collect();
        assert_eq!((ways.len(), plan(mode).turn_mode(7, true).stamps), (1, stamps));
    }
}

#[test]
fn digests_are_those_of_b3sum_and_md5sum() {
    let digest = |kind: DigestKind, parts: &[&str]| {
        let mut hasher = kind.hasher();
        parts.iter().for_each(|part| hasher.update(part.as_bytes()));
        hasher.end()
    };
    // RFC 1321, and the test vectors of BLAKE3.
    assert_eq!(digest(DigestKind::Md5, &["a", "bc"]), "900150983cd24fb0d6963f7d28e17f72");
    let abc = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
    assert_eq!(digest(DigestKind::Blake3, &["ab", "c"]), abc);
}

#[test]
fn what_will_be_written_follows_from_the_limits() {
    let plan = plan(Mode::BurnIn);
    let here = std::path::Path::new("a");
    let footprint = |rounds, time| plan.footprint(Limits { rounds, time });
    let by_rounds = footprint(Some(10), None);
    // Both references, the largest copy, the stamped file; then ten rounds of the larger kind.
    assert_eq!(by_rounds.space_bytes[here], 1000 + 5000 + 5000 + 8192);
    assert_eq!(by_rounds.bytes_written[here], by_rounds.space_bytes[here] + 10 * 8192);
    let second = Some(Duration::from_secs(1));
    assert_eq!(footprint(None, second).time, Duration::from_secs(1));
    assert!(footprint(Some(10), second).bytes_written[here] < footprint(None, second).bytes_written[here]);
    assert_eq!(footprint(None, None).bytes_written[here], u64::MAX);
}
