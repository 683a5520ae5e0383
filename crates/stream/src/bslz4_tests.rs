//! Round trips through a reader that follows the described layout.
use proptest::prelude::*;

use super::*;

/// Decompresses an event of filter 32008, bit by bit.
pub(crate) fn decompressed(stored: &[u8], sample_bytes: usize) -> Vec<u8> {
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
    assert_eq!(made.len(), total);
    made
}

/// An event in its compressed form.
fn compressed(event: &[u8], sample_bytes: usize) -> Vec<u8> {
    let mut stored = vec![0xa5; bytes_max(event.len(), sample_bytes)];
    let bytes = Compressor::new(event.len(), sample_bytes).compress(event, &mut stored).unwrap();
    stored.truncate(bytes);
    stored
}

/// Bytes without a pattern.
fn noise(count: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| rng.u8(..)).take(count).collect()
}

proptest! {
    #[test]
    fn compressed_samples_round_trip(
        count in 1..5000usize,
        sample_bytes in proptest::sample::select(vec![1, 2, 4, 8]),
        seed in proptest::collection::vec(any::<u8>(), 1..3000),
    ) {
        let event: Vec<u8> = seed.into_iter().cycle().take(count * sample_bytes).collect();
        prop_assert_eq!(decompressed(&compressed(&event, sample_bytes), sample_bytes), event);
    }

    #[test]
    fn literals_of_damaged_blocks_are_within_them_or_missing(
        block in proptest::collection::vec(any::<u8>(), 0..200),
        count in 1..40usize,
    ) {
        prop_assert!(lone_literals(&block, count, 8192).is_none_or(|at| at <= block.len()));
    }
}

#[test]
fn incompressible_samples_fit_the_output() {
    for count in [1, 7, 8, 8191, 8192, 8193, 100_003] {
        let event = noise(count);
        let stored = compressed(&event, 1);
        assert!(stored.len() <= bytes_max(count, 1), "{count}");
        assert_eq!(decompressed(&stored, 1), event);
    }
}

#[test]
fn quiet_samples_become_small() {
    let event: Vec<u8> = (0..8192u32).flat_map(|index| ((index % 13) as u16).to_le_bytes()).collect();
    let stored = compressed(&event, 2);
    assert!(stored.len() < event.len() / 3, "{} of {} bytes remain", stored.len(), event.len());
}

#[test]
fn events_and_outputs_of_other_sizes_are_refused() {
    let mut compressor = Compressor::new(100, 2);
    assert_eq!(compressor.compress(&[0; 98], &mut [0; 500]), None);
    for bytes in [0, HEADER_BYTES, HEADER_BYTES + LENGTH_BYTES, 20] {
        assert_eq!(compressor.compress(&[0; 100], &mut vec![0; bytes]), None, "{bytes}");
    }
}

#[test]
fn other_literals_change_the_samples_and_not_their_number() {
    let event: Vec<u8> = noise(8192).iter().flat_map(|byte| u16::from(byte % 16).to_le_bytes()).collect();
    let stored = compressed(&event[..BLOCK_BYTES], 2);
    let block = HEADER_BYTES + LENGTH_BYTES;
    let at = block + lone_literals(&stored[block..], 8, 512).unwrap();
    let mut stamped = stored.clone();
    stamped[at..at + 8].fill(0xff);
    let found = decompressed(&stamped, 2);
    assert_eq!(found.len(), BLOCK_BYTES);
    // All in the lowest bit.
    let changed = found.iter().zip(&event).filter(|(one, other)| one != other);
    assert!(changed.clone().count() > 0 && changed.clone().all(|(one, other)| one ^ other == 1), "{found:?}");
    assert_eq!(lone_literals(&stored[block..], 513, 512), None);
    // Without literals there is no place.
    let zeros = compressed(&[0; BLOCK_BYTES], 2);
    assert_eq!(lone_literals(&zeros[block..], 8, 512), None);
}
