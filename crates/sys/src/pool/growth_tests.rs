//! Pages come before they are needed, and not long before.
use std::time::{Duration, Instant};

use super::super::{GRAIN_BYTES, PageKind, Pages, Pool, ReusableMemory};
use super::*;

const POOL_BYTES: usize = 128 << 20;

/// Memory of the pool that has pages, in bytes.
fn populated(pool: &Pool) -> usize {
    let chunks = pool.part.populated.iter().filter(|is_populated| is_populated.load(Relaxed));
    chunks.count() * HUGE_PAGE_BYTES
}

fn pool(memory: &ReusableMemory, pages: Pages) -> Pool {
    memory.pools(POOL_BYTES, &[Vec::new()], pages).unwrap().remove(0)
}

#[test]
fn pages_come_with_use_and_stay_for_the_next_pool() {
    let memory = ReusableMemory::default();
    let mut pool = pool(&memory, Pages::AsNeeded);
    if pool.page_kind() == PageKind::Plain {
        // Plain pages are registered with the ring, which needs them all.
        assert_eq!(populated(&pool), POOL_BYTES);
        return;
    }
    assert_eq!(populated(&pool), FIRST_BYTES);
    // A slow source: the same block again and again.
    for _ in 0..1000 {
        let block = pool.take(1 << 20).unwrap();
        pool.give_back(block);
    }
    let taken = pool.take(1 << 20).unwrap();
    // Blocks pile up.
    let more = pool.take(2 << 20).unwrap();
    let since = Instant::now();
    while populated(&pool) < 2 * FIRST_BYTES && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(populated(&pool), 2 * FIRST_BYTES, "the slow source had no more than the first pages");
    // The thread ends with the pool, and what it made remains.
    drop((pool, taken, more));
    let again = super::tests::pool(&memory, Pages::AsNeeded);
    assert_eq!(populated(&again), 2 * FIRST_BYTES);
    drop(again);
    let whole = super::tests::pool(&memory, Pages::AtOnce);
    assert_eq!(populated(&whole), POOL_BYTES);
    assert!(whole.growth.is_none());
}

#[test]
fn memory_without_pages_is_lent_before_it_is_refused() {
    let memory = ReusableMemory::default();
    let mut pool = pool(&memory, Pages::AsNeeded);
    for bytes in [GRAIN_BYTES, 1 << 20, 3 << 20, POOL_BYTES] {
        assert_eq!(pool.bytes_free(), POOL_BYTES);
        let mut blocks: Vec<_> = std::iter::from_fn(|| pool.take(bytes)).collect();
        assert_eq!(blocks.len(), POOL_BYTES / bytes);
        assert_eq!(pool.bytes_free(), POOL_BYTES % bytes);
        for (mark, block) in blocks.iter_mut().enumerate() {
            block.chunks_mut(GRAIN_BYTES).for_each(|grain| grain[0] = mark as u8);
        }
        let is_whole = |(mark, block): (usize, &super::super::Block)| {
            block.chunks(GRAIN_BYTES).all(|grain| grain[0] == mark as u8)
        };
        assert!(blocks.iter().enumerate().all(is_whole), "{bytes}");
        blocks.into_iter().for_each(|block| pool.give_back(block));
        // All at once, in memory of which nothing was lent.
        drop(std::mem::replace(&mut pool, super::tests::pool(&ReusableMemory::default(), Pages::AsNeeded)));
    }
}
