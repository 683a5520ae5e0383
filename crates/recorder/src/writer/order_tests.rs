//! The order of a volume's blocks under every order of completions.
use keepup_sys::pool::Pool;
use proptest::prelude::*;

use super::*;
use crate::link::samples;

fn meta(number: u64) -> SealedMeta {
    samples::meta(0, 0, number)
}

fn numbers(metas: impl IntoIterator<Item = SealedMeta>) -> Vec<u64> {
    metas.into_iter().map(|m| m.header.stream_block).collect()
}

proptest! {
    /// For any order of completions and any failing block: the written blocks are the ones before
    /// the first hole, every other block comes back with its memory, and durable blocks are
    /// reported once and in order.
    #[test]
    fn nothing_behind_a_hole_counts_as_written(
        order in Just((0..20u64).collect::<Vec<_>>()).prop_shuffle(),
        failing in proptest::option::of(0..20u64),
        per_segment in 1..8u64,
    ) {
        let mut pool = Pool::new(4 << 20).unwrap();
        let mut blocks = Order::new();
        for n in 0..20 {
            let end = ((n % per_segment) + 2) * SECTOR as u64;
            prop_assert_eq!(blocks.begin(meta(n), (n / per_segment) as u32, end, 0), n);
        }
        let mut written = Vec::new();
        for token in order {
            blocks.landed(token, pool.take(4096).unwrap(), Some(token) != failing).unwrap();
            while let Some(sealed) = blocks.next_written() {
                written.push(sealed.meta.header.stream_block);
                pool.give_back(sealed.block);
            }
        }
        let hole = failing.unwrap_or(20);
        prop_assert_eq!(&written, &(0..hole).collect::<Vec<_>>());
        if hole > 0 {
            let segment = ((hole - 1) / per_segment) as u32;
            let in_segment = (hole - 1) % per_segment + 1;
            let end = (in_segment + 1) * SECTOR as u64;
            prop_assert_eq!(blocks.written_end(segment, 0, 0), (end, in_segment));
            if segment > 0 {
                prop_assert_eq!(blocks.written_end(segment - 1, 77, 7), (77, 7));
            }
            prop_assert_eq!(blocks.written_end(segment + 1, 77, 7), (SECTOR as u64, 0));
        }
        let returned: Vec<_> = blocks.take_unwritten();
        let metas = returned.iter().map(|(meta, _)| meta.clone());
        prop_assert_eq!(numbers(metas), (hole..20).collect::<Vec<_>>());
        for (_, block) in returned {
            pool.give_back(block.unwrap());
        }
        for segment in 0..20 {
            blocks.finished(segment);
        }
        let durable = numbers(std::iter::from_fn(|| blocks.next_durable()));
        prop_assert_eq!(durable, (0..hole).collect::<Vec<_>>());
        prop_assert!(blocks.is_empty());
        prop_assert_eq!(pool.bytes_free(), pool.bytes());
    }
}

#[test]
fn a_block_with_an_unfinished_write_comes_without_its_memory() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let mut order = Order::new();
    for n in 0..3 {
        order.begin(meta(n), 0, (n + 2) * SECTOR as u64, 0);
    }
    order.landed(0, pool.take(1).unwrap(), true);
    order.next_written().unwrap();
    order.landed(2, pool.take(1).unwrap(), true);
    let unwritten = order.take_unwritten();
    let with_memory: Vec<bool> = unwritten.iter().map(|(_, block)| block.is_some()).collect();
    assert_eq!(with_memory, [false, true]);
    assert_eq!(numbers(order.take_undurable()), [0]);
}

#[test]
fn a_flush_covers_only_what_was_written_when_it_started() {
    let mut pool = Pool::new(2 << 20).unwrap();
    let mut order = Order::new();
    for n in 0..3 {
        order.begin(meta(n), 0, (n + 2) * SECTOR as u64, 0);
    }
    order.landed(0, pool.take(1).unwrap(), true);
    order.next_written().unwrap();
    let covered = order.coverable(0).unwrap();
    order.landed(1, pool.take(1).unwrap(), true);
    order.next_written().unwrap();
    order.covered(covered);
    assert_eq!(numbers(std::iter::from_fn(|| order.next_durable())), [0]);
    assert_eq!(order.coverable(0).unwrap().blocks, 2);
    assert!(order.coverable(1).is_none());
    assert_eq!(numbers(order.take_undurable()), [1, 2]);
}
