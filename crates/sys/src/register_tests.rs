//! Mapped registers are accessed one by one, and nothing beyond the mapping.
use std::io::Write;
use std::os::fd::AsFd;

use proptest::prelude::*;

use super::*;

const BYTES: usize = 8192;

fn mapped() -> RegisterMap {
    let mut file = tempfile::tempfile().unwrap();
    let data: Vec<u8> = (0..BYTES).map(|index| (index * 7 + index / 256) as u8).collect();
    file.write_all(&data).unwrap();
    RegisterMap::new(file.as_fd(), 0, BYTES).unwrap()
}

fn byte(at: u64) -> u64 {
    (at * 7 + at / 256) & 0xff
}

proptest! {
    #[test]
    fn every_width_reads_correctly(
        bits in prop::sample::select(vec![8u32, 16, 32, 64]), index in 0..1100u64, count in 0..1100u64,
        is_fifo in any::<bool>(),
    ) {
        let map = mapped();
        let width = Width::of_bits(bits).unwrap();
        let bytes = width.bytes() as u64;
        let span = Span { offset: index * bytes, count, width, is_fifo };
        let last = if is_fifo { 1 } else { count };
        let fits = count > 0 && span.offset + last * bytes <= BYTES as u64;
        let mut values = vec![7];
        prop_assert_eq!(map.read(&span, &mut values).is_ok(), fits);
        prop_assert_eq!(map.sweep(&span, 1).is_ok(), fits);
        let value = |at: u64| (0..bytes).map(|part| byte(at + part) << (8 * part)).sum::<u64>();
        let expected = |nth: u64| value(span.offset + if is_fifo { 0 } else { nth * bytes });
        let all: Vec<u64> = (0..if fits { count } else { 0 }).map(expected).collect();
        prop_assert_eq!(values, all);
    }
}

#[test]
fn unaligned_and_out_of_range_registers_are_refused_with_a_reason() {
    let map = mapped();
    let span = Span { offset: 2, count: 1, width: Width::Bits32, is_fifo: false };
    assert!(map.sweep(&span, 1).unwrap_err().to_string().contains("0x2 is not a multiple of 4"));
    let span = Span { offset: u64::MAX - 3, ..span };
    assert!(map.sweep(&span, 1).unwrap_err().to_string().contains("reach beyond its 8192 bytes"));
    let span = Span { offset: 0, count: u64::MAX, ..span };
    assert!(map.sweep(&span, 1).is_err());
    assert_eq!((Width::Bits8.all_ones(), Width::Bits64.all_ones()), (0xff, u64::MAX));
    assert_eq!(Width::of_bits(24), None);
}

#[test]
fn a_write_changes_only_its_register() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[0; BYTES]).unwrap();
    let map = RegisterMap::writable(file.as_fd(), 0, BYTES).unwrap();
    for (offset, width, value) in [
        (1, Width::Bits8, 0xa1),
        (2, Width::Bits16, 0xb3b2),
        (4, Width::Bits32, 0xc7c6_c5c4),
        (8, Width::Bits64, 0xdfde_dddc_dbda_d9d8),
        (BYTES as u64 - 4, Width::Bits32, 0x0403_0201),
    ] {
        map.write(offset, width, value).unwrap();
        assert_eq!(map.value(offset, width).unwrap(), value);
    }
    map.write_again(16, Width::Bits8, 7, 3, true).unwrap();
    map.write_again(16, Width::Bits8, 9, 0, true).unwrap();
    assert_eq!(map.value(16, Width::Bits8).unwrap(), 7);
    map.write(16, Width::Bits8, 0).unwrap();
    let mut all = vec![0; BYTES];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut all, 0).unwrap();
    let first = [0, 0xa1, 0xb2, 0xb3, 0xc4, 0xc5, 0xc6, 0xc7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf];
    assert_eq!((&all[..16], &all[BYTES - 4..]), (&first[..], &[1, 2, 3, 4][..]));
    assert!(all[16..BYTES - 4].iter().all(|byte| *byte == 0));
}

#[test]
fn invalid_writes_are_refused_with_a_reason() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(BYTES as u64).unwrap();
    let map = RegisterMap::writable(file.as_fd(), 0, BYTES).unwrap();
    for (offset, width, value, words) in [
        (2, Width::Bits32, 1, "not a multiple of 4"),
        (BYTES as u64, Width::Bits8, 1, "beyond its 8192 bytes"),
        (u64::MAX - 7, Width::Bits64, 1, "beyond its 8192 bytes"),
        (0, Width::Bits8, 0x100, "more than the 8 bits"),
    ] {
        let why = map.write(offset, width, value).unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }
    let read = RegisterMap::new(file.as_fd(), 0, BYTES).unwrap();
    assert!(!read.is_writable() && map.is_writable());
    assert!(read.write(0, Width::Bits8, 1).unwrap_err().to_string().contains("read-only"));
}
