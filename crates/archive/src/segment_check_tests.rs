//! A check in pieces finds every changed byte of the blocks.
use keepup_recording::fixture::{manifest, scene_segment_of};
use keepup_recording::id::Id;

use super::*;

const ID: Id = Id([9; 16]);
const BLOCKS: u64 = 3;

fn check(bytes: &[u8], piece: usize, blocks: u64) -> Result<(), SegmentFault> {
    let builder = scene_segment_of(ID, 0, BLOCKS).unwrap();
    let data_bytes = builder.bytes().len() as u64;
    let state = SegmentState::Ended { bytes: bytes.len() as u64, data_bytes, blocks };
    let segment = Segment { index: 0, id: ID, path: "x".into(), state };
    let volume = Volume::new(std::path::Path::new("x"), manifest(vec!["x".into()], 0));
    let mut check = SegmentCheck::new(&volume, &segment).unwrap();
    bytes.chunks(piece).for_each(|piece| check.update(piece));
    check.finish()
}

fn whole() -> Vec<u8> {
    scene_segment_of(ID, 0, BLOCKS).unwrap().finish()
}

#[test]
fn an_intact_segment_passes_in_pieces_of_any_size() {
    for piece in [1, 7, 31, 4095, 4096, 4097, 9000, 1 << 20] {
        assert_eq!(check(&whole(), piece, BLOCKS), Ok(()), "{piece}");
    }
}

#[test]
fn every_changed_byte_of_the_blocks_is_found() {
    let good = whole();
    let end = scene_segment_of(ID, 0, BLOCKS).unwrap().bytes().len();
    for at in SECTOR..end {
        let mut bad = good.clone();
        bad[at] ^= 4;
        let fault = check(&bad, 5000, BLOCKS).expect_err("a changed byte");
        let block = (at - SECTOR) / (2 * SECTOR) * 2 * SECTOR + SECTOR;
        assert!((block as u64..=at as u64).contains(&fault.offset), "byte {at}: {fault:?}");
    }
}

#[test]
fn a_segment_that_is_cut_or_another_one_is_refused() {
    let good = whole();
    let end = scene_segment_of(ID, 0, BLOCKS).unwrap().bytes().len();
    for length in [0, 100, SECTOR, 2 * SECTOR, end - 1] {
        assert!(check(&good[..length], 4096, BLOCKS).is_err(), "{length}");
    }
    assert!(check(&good, 4096, BLOCKS + 1).is_err(), "blocks are missing");
    let other = scene_segment_of(Id([8; 16]), 0, BLOCKS).unwrap().finish();
    assert_eq!(check(&other, 4096, BLOCKS).unwrap_err().offset, 0);
    assert!(check(&scene_segment_of(ID, 1, BLOCKS).unwrap().finish(), 4096, BLOCKS).is_err());
}
