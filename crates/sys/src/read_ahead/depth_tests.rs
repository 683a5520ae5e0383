//! The depth grows while that makes the disk faster.
use super::*;

/// The depth found for a disk with these rates at 4, 8 and 16 pieces.
fn found(rates: [f64; 3], is_disk: bool) -> usize {
    let mut depth = Depth::default();
    for _ in 0..10 {
        let rate = rates[(depth.pieces().ilog2() - 2) as usize];
        depth.judge(rate, is_disk);
    }
    depth.pieces()
}

#[test]
fn it_is_doubled_while_the_disk_gains_from_it() {
    assert_eq!(found([1.0, 1.05, 9.0], true), 4);
    assert_eq!(found([1.0, 1.5, 1.4], true), 8);
    assert_eq!(found([1.0, 1.5, 2.0], true), 16);
    assert_eq!(found([1.0, 2.0, 4.0], false), 4, "the reader is slower than the disk");
}
