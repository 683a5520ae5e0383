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
fn a_header_states_second_thread_and_rate() {
    // 128 million 2-bit samples a second in frames of 5000 bytes: 6400 frames a second.
    let found = Frame::read(&frame(100, 3200, 64)).unwrap();
    assert_eq!((found.station, found.thread), (u16::from_be_bytes(*b"Ef"), 3));
    assert_eq!((found.epoch, found.second, found.in_second), (40, 100, 3200));
    assert_eq!(found.stated, Some(6400));
    // Epoch 40 is the first half of 2020.
    assert_eq!(found.unix_s(), 1_577_836_800 + 100);
    // Version 1 has the rate in the same place.
    let mut other = frame(100, 3200, 64);
    other[19] = 1;
    assert_eq!(Frame::read(&other).unwrap().stated, Some(6400));
    // Other versions and headers without extended data have none.
    other[19] = 2;
    assert_eq!(Frame::read(&other).unwrap().stated, None);
    let mut legacy = frame(1, 0, 64);
    legacy[3] |= 0x40;
    assert_eq!(Frame::read(&legacy).unwrap().stated, None);
}

#[test]
fn what_is_no_frame() {
    let read = |frame: &[u8]| Frame::read(frame).unwrap_err();
    assert!(read(&[0; 8]).contains("shorter than a VDIF header"));
    assert!(read(&frame(1, 0, 64)[..5000]).contains("states 5032"));
}

/// Header with a reference epoch and a second.
fn of(epoch: u32, second: u32) -> Frame {
    Frame { epoch, second, ..Frame::read(&frame(0, 0, 64)).unwrap() }
}

#[test]
fn leap_seconds_are_seconds_of_their_own() {
    // Epoch 33 is the second half of 2016, with a leap second at its end.
    let days = 184 * 86_400;
    let (last, leap, next) = (of(33, days - 1), of(33, days), of(34, 0));
    assert_eq!([leap, next].map(|frame| frame.elapsed_s() - last.elapsed_s()), [1, 2]);
    assert_eq!([last, leap, next].map(|frame| frame.unix_s()), [1_483_228_799, 1_483_228_800, 1_483_228_800]);
    // A sender that stays in the old epoch.
    assert_eq!(of(33, days + 1).elapsed_s(), next.elapsed_s());
    assert_eq!(of(33, days + 1).unix_s(), next.unix_s());
    // No leap second at the end of epoch 40.
    assert_eq!(of(41, 0).elapsed_s() - of(40, 182 * 86_400 - 1).elapsed_s(), 1);
    assert!(of(40, 182 * 86_400 - 1).is_last_of_epoch() && !of(40, 182 * 86_400 - 2).is_last_of_epoch());
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
        if let Ok(frame) = Frame::read(&frame) {
            prop_assert!(frame.in_second < FRAMES_PER_SECOND_MAX);
            prop_assert!(frame.unix_s() <= 946_684_800 + frame.elapsed_s());
        }
    }
}
