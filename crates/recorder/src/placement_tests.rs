//! Placement chooses usable volumes only.
use proptest::prelude::*;

use super::*;

fn loads(loads: &[(bool, u64)]) -> Vec<VolumeLoad> {
    loads.iter().map(|&(usable, bytes_waiting)| VolumeLoad { usable, bytes_waiting }).collect()
}

#[test]
fn free_placement_takes_the_least_loaded_volume_and_equal_ones_in_turn() {
    let mut free = PlacementKind::Free.build(0);
    let equal = loads(&[(true, 0), (true, 0), (true, 0)]);
    let turns: Vec<_> = (0..6).map(|_| free.choose(0, &equal).unwrap()).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
    assert_eq!(free.choose(0, &loads(&[(true, 9), (true, 4), (false, 0)])), Some(1));
}

#[test]
fn pinned_placement_keeps_a_stream_on_its_volume_until_that_fails() {
    let mut pinned = PlacementKind::Pinned.build(0);
    let busy = loads(&[(true, 99), (true, 0)]);
    assert_eq!(pinned.choose(4, &busy), Some(0));
    assert_eq!(pinned.choose(5, &busy), Some(1));
    assert_eq!(pinned.choose(4, &loads(&[(false, 0), (true, 0)])), Some(1));
}

proptest! {
    #[test]
    fn only_usable_volumes_are_chosen(
        volumes in proptest::collection::vec((any::<bool>(), any::<u64>()), 1..9),
        stream: u32,
    ) {
        let volumes = loads(&volumes);
        for kind in [PlacementKind::Free, PlacementKind::Pinned] {
            match kind.build(0).choose(stream, &volumes) {
                Some(volume) => prop_assert!(volumes[volume].usable),
                None => prop_assert!(volumes.iter().all(|v| !v.usable)),
            }
        }
    }
}
