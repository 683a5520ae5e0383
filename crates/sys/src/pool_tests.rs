//! The pool lends disjoint blocks and all of its memory, and accepts every grain back.
use proptest::prelude::*;

use super::*;

#[test]
fn the_pool_lends_all_of_its_memory_and_no_more() {
    let mut pool = Pool::new(4 << 20).unwrap();
    let blocks: Vec<_> = std::iter::from_fn(|| pool.take(1 << 20)).collect();
    assert_eq!(blocks.len(), 4);
    assert_eq!(pool.bytes_free(), 0);
    for block in blocks {
        pool.give_back(block);
    }
    assert_eq!(pool.bytes_free(), 4 << 20);
    assert!(pool.take(4 << 20).is_some());
}

/// A pool for one thread.
fn one(memory: &ReusableMemory, bytes: usize) -> Pool {
    memory.pools(bytes, &[Vec::new()], Pages::AtOnce).unwrap().remove(0)
}

#[test]
fn a_pool_takes_the_memory_of_one_that_has_ended() {
    let memory = ReusableMemory::default();
    let base = |pool: &Pool| pool.part.base;
    let mut pool = one(&memory.clone(), 4 << 20);
    let (first, block) = (base(&pool), pool.take(1).unwrap());
    drop(pool);
    let beside = one(&memory, 4 << 20);
    assert_ne!(base(&beside), first, "a block of the memory still exists");
    let (second, handle) = (base(&beside), beside.memory());
    drop(beside);
    let third = one(&memory, 4 << 20);
    assert!(base(&third) != second && base(&third) != first, "a ring may still use the memory");
    drop(block);
    let mut again = one(&memory, (4 << 20) - 5);
    assert_eq!((base(&again), again.bytes_free()), (first, 4 << 20));
    assert_eq!(again.take(4 << 20).unwrap().len(), 4 << 20);
    drop((again, handle, third));
    assert_eq!(one(&memory, 2 << 20).bytes(), 2 << 20, "not of this size");
    assert_eq!(memory.kept.lock().unwrap().len(), 1, "unused memory of other sizes is freed");
}

#[test]
fn a_block_larger_than_the_pool_is_refused() {
    let mut pool = Pool::new(2 << 20).unwrap();
    assert!(pool.take((2 << 20) + 1).is_none());
}

#[test]
fn blocks_are_page_aligned_and_writable_to_the_last_byte() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let mut block = pool.take(5000).unwrap();
    assert_eq!(block.as_ptr() as usize % crate::PAGE_BYTES, 0);
    let last = block.len() - 1;
    block[last] = 7;
    assert_eq!(block[last], 7);
}

proptest! {
    #[test]
    fn blocks_never_overlap(sizes in proptest::collection::vec((1usize..600_000, any::<bool>()), 1..80)) {
        let mut pool = Pool::new(4 << 20).unwrap();
        let mut held: Vec<(Block, u8)> = Vec::new();
        for (turn, (bytes, give)) in sizes.into_iter().enumerate() {
            if give && !held.is_empty() {
                let (block, mark) = held.swap_remove(turn % held.len());
                prop_assert!(block.iter().all(|&b| b == mark));
                pool.give_back(block);
            } else if let Some(mut block) = pool.take(bytes) {
                prop_assert!(block.len() >= bytes);
                block.fill(turn as u8);
                held.push((block, turn as u8));
            }
        }
        let lent: usize = held.iter().map(|(b, _)| b.len()).sum();
        prop_assert_eq!(pool.bytes_free() + lent, pool.bytes());
        for (block, mark) in held {
            prop_assert!(block.iter().all(|&b| b == mark));
            pool.give_back(block);
        }
        prop_assert_eq!(pool.bytes_free(), pool.bytes());
        prop_assert!(pool.take(4 << 20).is_some());
    }
}

/// A child forked while blocks are in flight has no copy of them.
#[test]
fn a_child_has_no_copy_of_the_pool() {
    let pool = Pool::new(2 << 20).unwrap();
    let address = format!("{:x}-", pool.part.base.as_ptr().addr());
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let of_pool = smaps.split_once(&address).unwrap().1;
    let flags = of_pool.lines().find(|line| line.starts_with("VmFlags:")).unwrap();
    assert!(flags.split_ascii_whitespace().any(|flag| flag == "dc"), "{flags}");
}

#[test]
fn the_parts_of_a_pool_share_its_memory_and_no_grain() {
    let parts = ReusableMemory::default().pools(10 << 20, &[vec![0], Vec::new()], Pages::AtOnce).unwrap();
    let [mut left, mut right] = <[Pool; 2]>::try_from(parts).unwrap();
    assert!(Arc::ptr_eq(&left.part.mapping, &right.part.mapping));
    // Taking a block writes to the pool's own reference alone.
    let counts = |pool: &Pool| (Arc::strong_count(&pool.part), Arc::strong_count(&pool.part.mapping));
    let before = (counts(&left), counts(&right));
    let block = left.take(1).unwrap();
    assert_eq!((counts(&left).0, counts(&left).1, counts(&right)), (before.0.0 + 1, before.0.1, before.1));
    left.give_back(block);
    assert_eq!([left.bytes(), right.bytes()], [4 << 20; 2], "rounded down to huge pages");
    let (mut a, mut b) = (left.take(4 << 20).unwrap(), right.take(4 << 20).unwrap());
    a.fill(1);
    b.fill(2);
    assert!(a.iter().all(|&byte| byte == 1) && b.iter().all(|&byte| byte == 2));
    assert!(left.take(1).is_none(), "it does not lend the other part's memory");
    left.give_back(a);
    right.give_back(b);
    assert_eq!([left.bytes_free(), right.bytes_free()], [4 << 20; 2]);
    let memory = ReusableMemory::default();
    let refused = |cpus: &[Vec<usize>]| memory.pools(2 << 20, cpus, Pages::AtOnce).is_err();
    assert!(refused(&[Vec::new(), Vec::new()]), "it has one huge page");
    assert!(refused(&[vec![4000]]), "there is no such CPU");
}
