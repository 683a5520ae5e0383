//! Round trips through a reader that follows the described layout.
use proptest::prelude::*;

use super::super::tests::reduced;
use keepup_plan::Element;

use super::*;

/// Decompresses the output of filter 32008, bit by bit.
fn decompressed(stored: &[u8], sample_bytes: usize) -> Vec<u8> {
    let total = u64::from_be_bytes(stored[..8].try_into().unwrap()) as usize;
    let block_bytes = u32::from_be_bytes(stored[8..12].try_into().unwrap()) as usize;
    let (mut at, mut made) = (12, Vec::new());
    let grouped = total - total % (8 * sample_bytes);
    while made.len() < grouped {
        let length = u32::from_be_bytes(stored[at..at + 4].try_into().unwrap()) as usize;
        let bytes = block_bytes.min(grouped - made.len());
        let shuffled = lz4_flex::block::decompress(&stored[at + 4..at + 4 + length], bytes).unwrap();
        assert_eq!(shuffled.len(), bytes);
        let count = bytes / sample_bytes;
        let mut block = vec![0u8; bytes];
        for (bit, sample) in (0..8 * sample_bytes).flat_map(|b| (0..count).map(move |s| (b, s))) {
            let set = shuffled[bit * (count / 8) + sample / 8] >> (sample % 8) & 1;
            block[sample * sample_bytes + bit / 8] |= set << (bit % 8);
        }
        made.extend(block);
        at += 4 + length;
    }
    made.extend(&stored[at..]);
    made
}

const ELEMENTS: [Element; 4] = [Element::U8, Element::I16, Element::F32, Element::U64];

proptest! {
    #[test]
    fn compressed_samples_round_trip(
        count in 1..5000usize,
        element in proptest::sample::select(ELEMENTS.to_vec()),
        seed in proptest::collection::vec(any::<u8>(), 1..3000),
    ) {
        let event: Vec<u8> = seed.into_iter().cycle().take(count * element.bytes() as usize).collect();
        let stored = reduced("lz4", element, &[count as u64], &event);
        prop_assert_eq!(decompressed(&stored, element.bytes() as usize), event);
    }
}

#[test]
fn incompressible_samples_fit_the_output() {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    for count in [1, 7, 8, 8191, 8192, 8193, 100_003] {
        let event: Vec<u8> = (0..count).map(|_| noise()).collect();
        let stored = reduced("lz4", Element::U8, &[count as u64], &event);
        assert!(stored.len() <= bytes_max(count, 1), "{count}");
        assert_eq!(decompressed(&stored, 1), event);
    }
}

#[test]
fn quiet_samples_become_small() {
    let event: Vec<u8> = (0..8192u32).flat_map(|index| ((index % 13) as u16).to_le_bytes()).collect();
    let stored = reduced("lz4", Element::U16, &[8192], &event);
    assert!(stored.len() < event.len() / 3, "{} of {} bytes remain", stored.len(), event.len());
}
