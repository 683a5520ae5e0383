//! Places of streams, and the steps of the end.
use proptest::prelude::*;

use super::*;

fn counted(places: &Places) -> Vec<usize> {
    let at = |intake| places.streams.values().filter(|place| **place == Place::At(intake)).count();
    (0..places.counts.len()).map(at).collect()
}

#[test]
fn new_streams_go_to_the_intake_with_the_fewest_and_known_ones_stay() {
    let mut places = Places::new(3);
    let mut route = |ids: &[u32], near| places.route(ids, near).unwrap();
    let here = |intake| Route { intake, elsewhere: BTreeMap::new() };
    assert_eq!(route(&[1, 2], 1), here(1), "all are empty: the near one");
    assert_eq!(route(&[3], 1), here(0), "the first of the emptiest");
    assert_eq!(route(&[4], 2), here(2), "the near one of the emptiest");
    assert_eq!(route(&[2, 1], 0), here(1), "a connection that comes back");
    let both = route(&[1, 2, 3, 9], 2);
    assert_eq!(both, Route { intake: 1, elsewhere: BTreeMap::from([(0, vec![3])]) });
    assert_eq!(route(&[9], 0), here(1), "a new stream beside known ones is placed with most of them");
    assert_eq!(route(&[3, 4], 2).intake, 0, "the lower index when equal");
}

#[test]
fn a_stream_on_its_way_has_no_place_until_it_arrives() {
    let mut places = Places::new(2);
    places.route(&[7], 0).unwrap();
    places.leave(7);
    assert_eq!(places.route(&[7, 8], 1), Err(StreamMoving(7)));
    assert!(!places.streams.contains_key(&8), "nothing was placed");
    places.arrive(7, 1);
    assert_eq!(places.route(&[7], 0).unwrap().intake, 1);
}

#[test]
fn ids_of_derived_streams_are_free_everywhere_and_can_be_given_up() {
    let mut places = Places::new(2);
    places.route(&[100], 0).unwrap();
    assert_eq!(places.claim(100..103, 1, |id| id == 101), Some(102));
    assert_eq!(places.claim(100..103, 0, |id| id == 101), None);
    places.forget(&[100, 102], 1);
    assert_eq!(places.route(&[100], 1).unwrap().intake, 0, "a stream of another intake stays");
    assert_eq!(places.claim(100..103, 0, |id| id == 101), Some(102));
}

proptest! {
    #[test]
    fn every_stream_is_at_one_intake_or_on_its_way(
        steps in proptest::collection::vec(
            (0u8..5, proptest::collection::vec(0u32..20, 1..5), 0usize..3), 1..60,
        ),
    ) {
        let mut places = Places::new(3);
        for (action, ids, intake) in steps {
            let place = places.streams.get(&ids[0]).copied();
            match (action, place) {
                (0 | 1, _) => {
                    if let Ok(route) = places.route(&ids, intake) {
                        for id in ids {
                            let at = route.elsewhere.iter().find(|(_, ids)| ids.contains(&id));
                            let expected = at.map_or(route.intake, |(intake, _)| *intake);
                            prop_assert_eq!(places.streams[&id], Place::At(expected));
                        }
                    }
                }
                (2, Some(Place::At(_))) => places.leave(ids[0]),
                (3, Some(Place::Moving)) => places.arrive(ids[0], intake),
                (4, _) => { places.claim(10..30, intake, |id| id == 11); }
                _ => {}
            }
            prop_assert_eq!(counted(&places), places.counts.clone());
        }
    }
}

fn shards(intakes: usize) -> Shards {
    Shards::new((0..intakes).map(|_| Waker::new().unwrap()).collect())
}

#[test]
fn a_step_is_taken_when_every_intake_has_taken_it() {
    let shards = shards(3);
    assert!(!shards.take_step(Step::Settled) && !shards.take_step(Step::Settled));
    assert!(!shards.is_taken(Step::Settled));
    assert!(shards.take_step(Step::Settled), "the last one");
    assert!(shards.is_taken(Step::Settled) && !shards.is_taken(Step::Accounted));
}

#[test]
fn the_first_reason_to_end_holds() {
    let shards = shards(2);
    shards.end(Ended::Stopped);
    shards.end(Ended::EndOfRun);
    assert_eq!(shards.ended(), Some(&Ended::Stopped));
}

#[test]
fn an_intake_that_panics_ends_the_others() {
    let shards = shards(2);
    let shards = std::sync::Arc::new(shards);
    let mut ended = Membership::new(&shards);
    ended.end();
    drop(ended);
    assert_eq!(shards.ended(), None, "it has ended in order");
    let membership = Membership::new(&shards);
    let thread = std::thread::spawn(move || {
        let _membership = membership;
        std::panic::resume_unwind(Box::new("a bug"));
    });
    assert!(thread.join().is_err());
    assert!(matches!(shards.ended(), Some(Ended::InternalError(why)) if why.contains("intake")));
    assert!(shards.is_taken(Step::MovesStopped), "nobody waits for it");
}
