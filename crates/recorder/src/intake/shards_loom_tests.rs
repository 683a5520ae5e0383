//! Every interleaving of the end of a recording, and of a stream that moves while a client asks for it.
use loom::sync::Arc;
use loom::thread;

use super::*;

fn shards(intakes: usize) -> Arc<Shards> {
    Arc::new(Shards::new((0..intakes).map(|_| Waker::new().unwrap()).collect()))
}

/// A writer that is closed has been given the last block of every intake, and the last intake knows the whole
/// account.
#[test]
fn writers_are_closed_after_the_last_block_of_every_intake() {
    loom::model(|| {
        let shards = shards(2);
        let rings = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let intakes: Vec<_> = (0..2)
            .map(|intake| {
                let (shards, rings) = (Arc::clone(&shards), Arc::clone(&rings));
                thread::spawn(move || {
                    // The block that was open until the end.
                    rings[intake].store(true, Ordering::Relaxed);
                    shards.add_ends(vec![(intake as u32, Default::default(), Default::default())]);
                    if shards.take_step(Step::Accounted) {
                        assert!(rings.iter().all(|ring| ring.load(Ordering::Relaxed)), "a block is missing");
                        assert_eq!(shards.take_ends().len(), 2);
                        return 1;
                    }
                    0
                })
            })
            .collect();
        let closed: usize = intakes.into_iter().map(|intake| intake.join().unwrap()).sum();
        assert_eq!(closed, 1, "one intake closes the writers");
    });
}

/// The last client of the run leaves one intake while another client ends at the other.
#[test]
fn the_end_of_the_run_is_seen_by_one_intake_at_least() {
    loom::model(|| {
        let shards = shards(2);
        (0..2).for_each(|_| shards.connect());
        let clients: Vec<_> = (0..2)
            .map(|_| {
                let shards = Arc::clone(&shards);
                thread::spawn(move || {
                    shards.note_end();
                    shards.disconnect();
                    shards.end_of_run().is_some()
                })
            })
            .collect();
        let seen: Vec<bool> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        assert!(seen.contains(&true), "nobody ends the recording");
    });
}

/// While stream 7 moves from intake 0 to intake 1, a client declares it. No intake makes it anew, and it is
/// never at both.
#[test]
fn a_stream_that_moves_is_made_once() {
    loom::model(|| {
        let shards = shards(2);
        shards.places().route(&[7], 0).unwrap();
        let inbox: Arc<Mutex<Vec<u32>>> = Arc::new(Mutex::new(Vec::new()));
        let old = {
            let (shards, mail) = (Arc::clone(&shards), Arc::clone(&inbox));
            thread::spawn(move || {
                shards.places().leave(7);
                lock(&mail).push(7);
            })
        };
        let new = {
            let (shards, inbox) = (Arc::clone(&shards), Arc::clone(&inbox));
            thread::spawn(move || {
                let mut streams = Vec::new();
                for _ in 0..2 {
                    // The intake takes its mail before it serves a client.
                    let mail = lock(&inbox).pop();
                    if let Some(id) = mail {
                        shards.places().arrive(id, 1);
                        streams.push(id);
                    }
                    let route = shards.places().route(&[7], 1);
                    if route.is_ok_and(|route| route.intake == 1) && !streams.contains(&7) {
                        streams.push(7);
                    }
                }
                streams
            })
        };
        old.join().unwrap();
        let mut all = new.join().unwrap();
        all.extend(lock(&inbox).drain(..));
        assert_eq!(all, [7]);
    });
}
