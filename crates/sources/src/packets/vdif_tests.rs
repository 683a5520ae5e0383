//! Numbers and times of VDIF frames.
use proptest::prelude::*;

use super::*;

/// A frame of 2-bit real samples of one channel, with extended data of the VLBA.
fn frame(seconds: u32, in_second: u32, bandwidth_mhz: u32) -> Vec<u8> {
    let bytes = 5032;
    let words = [
        seconds,
        40 << 24 | in_second,
        1 << 29 | (bytes / 8),
        1 << 26 | 3 << 16 | u32::from(u16::from_be_bytes(*b"Ef")),
        3 << 24 | 1 << 23 | bandwidth_mhz,
        0xACAB_FEED,
        0,
        0,
    ];
    let mut frame: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    frame.resize(bytes as usize, 0);
    frame
}

#[test]
fn a_frame_is_numbered_by_its_sample_rate() {
    // 128 million 2-bit samples a second in frames of 5000 bytes: 6400 frames a second.
    let found = Vdif::default().read(&frame(100, 3200, 64)).unwrap();
    // Epoch 40 is the first half of 2020.
    let time = (1_577_836_800 + 100) * 1_000_000_000 + 500_000_000;
    assert_eq!(found.number, 100 * 6400 + 3200);
    assert_eq!(found.timestamp_ns, Some(time));
    assert_eq!(found.thread, Some((u16::from_be_bytes(*b"Ef"), 3)));
    let stated = Vdif { frames_per_second: Some(10_000) };
    assert_eq!(stated.read(&frame(100, 3200, 64)).unwrap().number, 1_003_200);
}

#[test]
fn what_is_no_frame() {
    let read = |frame: &[u8]| Vdif::default().read(frame).unwrap_err();
    assert!(read(&[0; 8]).contains("shorter than a VDIF header"));
    assert!(read(&frame(1, 0, 64)[..5000]).contains("states 5032"));
    assert!(read(&frame(1, 6400, 64)).contains("frame number 6400 is out of range: 6400 frames per second"));
    // No sample rate: extended data of another version, and none.
    let mut other = frame(1, 0, 64);
    other[19] = 1;
    assert!(read(&other).contains("frames-per-second=N"));
    let mut legacy = frame(1, 0, 64);
    legacy[3] |= 0x40;
    assert!(read(&legacy).contains("frames-per-second=N"));
}

#[test]
fn names_of_stations() {
    assert_eq!(station_name(u16::from_be_bytes(*b"Wz")), "Wz");
    assert_eq!(station_name(7), "7");
}

#[test]
fn reference_epochs() {
    assert_eq!(epoch_seconds(0), 946_684_800);
    assert_eq!(epoch_seconds(53), 1_782_864_000);
    assert_eq!(epoch_seconds(63), 1_940_630_400);
}

proptest! {
    /// No bytes make it panic.
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), stated in any::<bool>()) {
        let mut frame = bytes;
        if stated && frame.len() >= 16 {
            frame.resize(frame.len().next_multiple_of(8), 0);
            let eighths = (frame.len() / 8) as u32;
            frame[8..11].copy_from_slice(&eighths.to_le_bytes()[..3]);
        }
        let _ = Vdif::default().read(&frame);
        let _ = Vdif { frames_per_second: Some(1 << 24) }.read(&frame);
    }
}
