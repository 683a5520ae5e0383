//! The watermark in every order of what can happen to blocks.
use super::*;

fn blocks(count: u64) -> Watermark {
    let mut watermark = Watermark::new();
    for block in 0..count {
        watermark.sealed(block, 10 * block, 10);
    }
    watermark
}

#[test]
fn it_waits_for_blocks_in_order() {
    let mut watermark = blocks(3);
    watermark.durable(1);
    assert!(!watermark.advance(None, 0));
    watermark.durable(0);
    assert!(watermark.advance(None, 0));
    assert_eq!((watermark.next, watermark.lost_events), (20, 0));
}

#[test]
fn it_passes_a_lost_block_and_counts_it() {
    let mut watermark = blocks(3);
    watermark.lost(10, 1);
    watermark.durable(0);
    watermark.durable(2);
    assert!(watermark.advance(None, 1));
    assert_eq!((watermark.next, watermark.lost_events), (30, 10));
}

#[test]
fn it_passes_a_loss_only_once_its_journal_entry_is_durable() {
    let mut watermark = blocks(2);
    watermark.durable(0);
    watermark.lost(10, 7);
    assert!(watermark.advance(None, 6));
    assert_eq!(watermark.next, 10);
    assert!(watermark.advance(Some(20), 7));
    assert_eq!((watermark.next, watermark.lost_events), (20, 10));
}

#[test]
fn damaged_events_count_with_the_block_behind_them_or_when_nothing_is_open() {
    let mut watermark = blocks(1);
    watermark.missing(1, 1);
    watermark.sealed(1, 11, 5);
    watermark.missing(2, 2);
    watermark.durable(0);
    watermark.durable(1);
    assert!(watermark.advance(Some(18), 1));
    assert_eq!((watermark.next, watermark.lost_events), (16, 1), "the last two are not journalled yet");
    assert!(watermark.advance(Some(18), 2));
    assert_eq!((watermark.next, watermark.lost_events), (18, 3));
    assert!(!watermark.advance(Some(18), 2));
}

#[test]
fn what_is_open_at_the_end_is_taken_once() {
    let mut watermark = blocks(3);
    watermark.durable(1);
    let open = |block: u64| Unsettled { first_sequence: 10 * block, events: 10 };
    assert_eq!(watermark.take_unsettled(), [open(0), open(2)]);
    assert_eq!(watermark.take_unsettled(), []);
    assert!(watermark.advance(None, 0));
    assert_eq!((watermark.next, watermark.lost_events), (30, 20));
}
