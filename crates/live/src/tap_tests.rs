//! Queues of seats: what fits, what is missed, and by whom.
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use keepup_results::live::TapFilter;

use super::{EventCopy, QUEUE_MAX, TapDesk};
use crate::testing::{Seats, card};

fn desk() -> (Arc<Seats>, Arc<TapDesk>) {
    let seats = Arc::new(Seats::default());
    (Arc::clone(&seats), TapDesk::new(seats))
}

fn copy(stream: u32, sequence: u64, bytes: usize) -> EventCopy {
    EventCopy::new(card(stream, sequence), vec![7u8; bytes])
}

#[tokio::test]
async fn a_copy_goes_to_the_seats_that_are_named() {
    let (_, desk) = desk();
    let mut first = desk.sit(TapFilter::default()).unwrap();
    let mut second = desk.sit(TapFilter::default()).unwrap();
    desk.hand_out(0b10, copy(1, 4, 10));
    desk.hand_out(0b11, copy(1, 5, 10));
    assert_eq!(first.next().await.unwrap().card.sequence, 5);
    assert_eq!(second.next().await.unwrap().card.sequence, 4);
}

#[tokio::test]
async fn who_does_not_read_misses_and_others_do_not() {
    let (seats, desk) = desk();
    let (stuck, mut reading) =
        (desk.sit(TapFilter::default()).unwrap(), desk.sit(TapFilter::default()).unwrap());
    for sequence in 0..100 {
        desk.hand_out(0b11, copy(1, sequence, 10));
        assert_eq!(reading.next().await.unwrap().card.sequence, sequence);
    }
    assert_eq!((stuck.missed(), reading.missed()), (100 - QUEUE_MAX as u64, 0));
    seats.missed.store(7, Relaxed);
    assert_eq!(reading.missed(), 7, "what could not be copied at all counts too");
}

#[tokio::test]
async fn one_seat_holds_a_part_of_the_memory_only() {
    let (_, desk) = desk();
    let mut seat = desk.sit(TapFilter::default()).unwrap();
    // Of 8,000 bytes one seat may hold 1,000, but one event however large it is.
    desk.hand_out(1, copy(1, 0, 5000));
    desk.hand_out(1, copy(1, 1, 10));
    assert_eq!(seat.missed(), 1);
    assert_eq!(seat.next().await.unwrap().payload.len(), 5000);
    desk.hand_out(1, copy(1, 2, 10));
    assert_eq!(seat.next().await.unwrap().card.sequence, 2);
}

#[tokio::test]
async fn a_seat_comes_free_when_its_owner_goes_and_the_next_one_gets_nothing_of_his() {
    let (seats, desk) = desk();
    drop(desk.sit(TapFilter::default()).unwrap());
    assert!(seats.taken.lock().unwrap().is_empty());
    let mut next = desk.sit(TapFilter { streams: vec![3], ..TapFilter::default() }).unwrap();
    desk.hand_out(1, copy(5, 0, 10));
    desk.hand_out(1, copy(3, 1, 10));
    assert_eq!(next.next().await.unwrap().card.stream, 3);
    let rest: Vec<_> = (1..64).map(|_| desk.sit(TapFilter::default()).unwrap()).collect();
    assert_eq!(rest.len(), 63);
    assert!(desk.sit(TapFilter::default()).is_err());
}
