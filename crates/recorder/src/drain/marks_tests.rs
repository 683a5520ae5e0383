//! Which segments count as durable elsewhere.
use super::*;

fn acked(end: u64) -> BTreeMap<u32, u64> {
    BTreeMap::from([(1, end), (2, 100)])
}

#[test]
fn a_segment_counts_when_it_was_read_and_fully_acknowledged() {
    let mut marks = SegmentMarks::default();
    marks.block(0, 1, 10);
    marks.block(0, 2, 5);
    marks.block(0, 1, 20);
    assert_eq!(marks.drained(&acked(50)), 0, "the segment may still grow");
    marks.read(0);
    marks.block(1, 1, 30);
    marks.read(1);
    assert_eq!(marks.drained(&acked(19)), 0);
    assert_eq!(marks.drained(&acked(20)), 1);
    assert_eq!(marks.drained(&acked(30)), 2);
    assert_eq!(marks.drained(&acked(0)), 2, "acknowledgements never go back");
}

#[test]
fn nothing_counts_from_the_first_segment_with_a_skipped_block_on() {
    let mut marks = SegmentMarks::default();
    for index in 0..4 {
        marks.block(index, 1, u64::from(index) * 10);
        marks.read(index);
    }
    marks.skipped(2);
    marks.read(2);
    assert_eq!(marks.drained(&acked(1000)), 2);
    marks.skipped(3);
    marks.block(4, 1, 50);
    marks.read(4);
    assert_eq!(marks.drained(&acked(1000)), 2);
}
