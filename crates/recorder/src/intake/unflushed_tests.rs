//! Limit and eviction order of unflushed blocks.
use keepup_sys::pool::GRAIN_BYTES;

use super::*;

fn keep(kept: &mut Unflushed, pool: &mut Pool, slot: usize, stream_block: u64) {
    let block = pool.take(GRAIN_BYTES).unwrap();
    kept.keep(slot, stream_block, block, pool);
}

#[test]
fn the_oldest_blocks_are_evicted_first_and_memory_is_counted() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let all = pool.bytes_free();
    let mut kept = Unflushed::new(3 * GRAIN_BYTES);
    for (slot, block) in [(0, 0), (2, 0), (0, 1), (2, 1)] {
        keep(&mut kept, &mut pool, slot, block);
    }
    assert_eq!((kept.bytes(), pool.bytes_free()), (3 * GRAIN_BYTES, all - 3 * GRAIN_BYTES));
    assert!(kept.take(0, 0).is_none(), "the oldest was given up");
    let durable = kept.take(0, 1).unwrap();
    pool.give_back(durable);
    assert!(kept.take(0, 1).is_none());
    assert!(kept.give_up_oldest(&mut pool) && kept.give_up_oldest(&mut pool));
    assert!(!kept.give_up_oldest(&mut pool));
    assert_eq!((kept.bytes(), pool.bytes_free()), (0, all));
}

#[test]
fn a_block_above_the_limit_is_not_kept() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let all = pool.bytes_free();
    let mut kept = Unflushed::new(0);
    keep(&mut kept, &mut pool, 0, 0);
    assert_eq!((kept.bytes(), pool.bytes_free()), (0, all));
}
