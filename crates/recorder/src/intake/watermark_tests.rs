//! The watermark under every order of block outcomes.
use super::*;

fn blocks(count: u64) -> Watermark {
    let mut watermark = Watermark::new();
    for block in 0..count {
        watermark.sealed(block, 10 * block, 10);
    }
    watermark
}

#[test]
fn the_watermark_waits_for_blocks_in_order() {
    let mut watermark = blocks(3);
    watermark.durable(1);
    assert!(!watermark.advance(None, 0));
    watermark.durable(0);
    assert!(watermark.advance(None, 0));
    assert_eq!((watermark.next, watermark.lost_events), (20, 0));
}

#[test]
fn the_watermark_passes_a_lost_block_and_counts_it() {
    let mut watermark = blocks(3);
    watermark.lost(10, 1);
    watermark.durable(0);
    watermark.durable(2);
    assert!(watermark.advance(None, 1));
    assert_eq!((watermark.next, watermark.lost_events), (30, 10));
}

#[test]
fn the_watermark_passes_a_loss_only_after_its_journal_entry_is_durable() {
    let mut watermark = blocks(2);
    watermark.durable(0);
    watermark.lost(10, 7);
    assert!(watermark.advance(None, 6));
    assert_eq!(watermark.next, 10);
    assert!(watermark.advance(Some(20), 7));
    assert_eq!((watermark.next, watermark.lost_events), (20, 10));
}

#[test]
fn damaged_events_count_with_the_next_block_or_when_all_is_settled() {
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
fn unsettled_blocks_are_taken_once_at_the_end() {
    let mut watermark = blocks(3);
    watermark.durable(1);
    let open = |block: u64| Unsettled { first_sequence: 10 * block, events: 10 };
    assert_eq!(watermark.take_unsettled(), [open(0), open(2)]);
    assert_eq!(watermark.take_unsettled(), []);
    assert!(watermark.advance(None, 0));
    assert_eq!((watermark.next, watermark.lost_events), (30, 20));
}

#[test]
fn a_watermark_is_clear_once_every_loss_is_in_the_journal() {
    let mut watermark = Watermark::new();
    assert!(watermark.is_clear(0));
    watermark.sealed(0, 0, 5);
    watermark.lost(0, 3);
    watermark.advance(Some(5), 2);
    assert!(!watermark.is_clear(2), "the loss of a block is not in the journal");
    watermark.advance(Some(5), 3);
    assert!(watermark.is_clear(3));
    watermark.missing(1, 4);
    assert!(!watermark.is_clear(3), "missing events are not in the journal");
    watermark.advance(Some(6), 4);
    assert!(watermark.is_clear(4));
    watermark.forget_entries();
    assert!(watermark.is_clear(0), "at another intake");
    assert_eq!(watermark.next, 6);
}

#[test]
fn it_waits_for_the_journal_only_while_an_entry_is_not_durable() {
    let mut watermark = Watermark::new();
    assert!(!watermark.waits_for_journal(0));
    // In front of the next block, and then of a block.
    watermark.missing(0, 3);
    assert!(watermark.waits_for_journal(2) && !watermark.waits_for_journal(3));
    watermark.sealed(0, 5, 1);
    assert!(watermark.waits_for_journal(2) && !watermark.waits_for_journal(3));
    watermark.durable(0);
    assert!(!watermark.advance(Some(6), 2) && watermark.waits_for_journal(2));
    assert!(watermark.advance(Some(6), 3) && !watermark.waits_for_journal(2));
}
