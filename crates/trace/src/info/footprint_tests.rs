//! Accessed pages, compared with a set.
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn pages(footprint: &Footprint) -> u64 {
    footprint.pages(3).iter().sum()
}

#[test]
fn a_partly_accessed_page_counts_as_a_whole() {
    let mut footprint = Footprint::new();
    footprint.mark(0, 4095, 4097);
    footprint.mark(0, 0, 1);
    footprint.mark(2, 0, 1);
    footprint.mark(0, 5, 5);
    assert_eq!(footprint.pages(3), [2, 0, 1]);
    // A range across several regions, and the end of the largest device.
    footprint.mark(1, (1 << 24) - 1, (3 << 24) + 1);
    footprint.mark(1, i64::MAX as u64 - 4096, i64::MAX as u64);
    assert_eq!(footprint.pages(3), [2, 2 * REGION_PAGES + 2 + 1 + 1, 1]);
}

#[test]
fn the_page_size_grows_instead_of_memory() {
    let mut footprint = Footprint::of(8);
    for number in 0..1000 {
        footprint.mark(0, number << 24, (number << 24) + 1);
    }
    assert!(footprint.regions.len() <= 8);
    // 1000 regions of 16 MiB fit into 8 with pages at least 128 times as large.
    assert_eq!(footprint.page_bytes(), 4096 * 128);
    assert_eq!(pages(&footprint), 1000);
}

proptest! {
    #[test]
    fn each_page_is_counted_once(
        ranges in prop::collection::vec((0u16..3, 0u64..1 << 30, 1u64..1 << 26), 1..60),
        regions in 6usize..40,
    ) {
        let mut footprint = Footprint::of(regions);
        for (device, start, bytes) in &ranges {
            footprint.mark(*device, *start, start + bytes);
        }
        let page = footprint.page_bytes();
        let mut all = BTreeSet::new();
        let mut exact = 0;
        for (device, start, bytes) in &ranges {
            for number in start / page..=(start + bytes - 1) / page {
                exact += u64::from(all.insert((*device, number)));
            }
        }
        prop_assert_eq!(pages(&footprint), exact);
        prop_assert!(footprint.regions.len() <= regions);
    }
}
