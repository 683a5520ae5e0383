//! Read order.
use super::*;

#[test]
fn every_piece_is_read_once_in_another_order() {
    let bytes = 40 * PIECE_BYTES as u64 + 4096;
    let in_order: Vec<u64> = (0..bytes).step_by(PIECE_BYTES).collect();
    let (mut one, other) = (shuffled(bytes, 1), shuffled(bytes, 2));
    assert_ne!(one, in_order);
    assert_ne!(one, other);
    assert_eq!(one, shuffled(bytes, 1));
    one.sort_unstable();
    assert_eq!(one, in_order);
}
