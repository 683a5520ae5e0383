//! What counts as durable elsewhere.
use super::*;

fn acked(end: u64) -> BTreeMap<u32, u64> {
    BTreeMap::from([(1, end), (2, 100)])
}

#[test]
fn a_segment_counts_when_it_was_read_and_all_of_it_is_there() {
    let mut marks = SegmentMarks::default();
    marks.block(0, 1, 10);
    marks.block(0, 2, 5);
    marks.block(0, 1, 20);
    assert_eq!(marks.drained(&acked(50)), 0, "more of it may come");
    marks.read(0);
    marks.block(1, 1, 30);
    marks.read(1);
    assert_eq!(marks.drained(&acked(19)), 0);
    assert_eq!(marks.drained(&acked(20)), 1);
    assert_eq!(marks.drained(&acked(30)), 2);
    assert_eq!(marks.drained(&acked(0)), 2, "what is there stays");
}

#[test]
fn nothing_counts_from_the_segment_on_of_which_something_was_left_out() {
    let mut marks = SegmentMarks::default();
    for index in 0..4 {
        marks.block(index, 1, u64::from(index) * 10);
        marks.read(index);
    }
    marks.left_out(2);
    marks.read(2);
    assert_eq!(marks.drained(&acked(1000)), 2);
    marks.left_out(3);
    marks.block(4, 1, 50);
    marks.read(4);
    assert_eq!(marks.drained(&acked(1000)), 2);
}
