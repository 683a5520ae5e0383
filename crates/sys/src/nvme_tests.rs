//! The log page of an example and of any content, and files that are no NVMe device. The answer of a real
//! device is not tested.
use proptest::prelude::*;

use super::*;

/// The page of a worn device: 103 % of its life used, spare 4 % below a threshold of 10 %, 1.2 PB written.
///
/// The offsets are those of the specification, 5.16.1.3: critical warning 0, available spare 3, its
/// threshold 4, percentage used 5, data units written 48 to 63.
fn page() -> [u8; LOG_BYTES] {
    let mut page = [0; LOG_BYTES];
    page[0] = 0b101;
    // Composite temperature, 310 K; not read.
    page[1..3].copy_from_slice(&310u16.to_le_bytes());
    (page[3], page[4], page[5]) = (4, 10, 103);
    // Data units read; not read.
    page[32..48].copy_from_slice(&u128::MAX.to_le_bytes());
    page[48..64].copy_from_slice(&2_343_750_000u128.to_le_bytes());
    page
}

#[test]
fn the_documented_fields_are_decoded() {
    let expected = SmartLog {
        used_percent: 103,
        spare_percent: 4,
        spare_threshold_percent: 10,
        is_degraded: true,
        written_bytes: Some(1_200_000_000_000_000),
    };
    assert_eq!(SmartLog::parse(&page()).unwrap(), expected);
    // Figures of a disk as smartctl prints them: 62,786,553 data units are 32.1 TB.
    let mut known = [0; LOG_BYTES];
    (known[3], known[4], known[5]) = (100, 99, 2);
    known[48..64].copy_from_slice(&62_786_553u128.to_le_bytes());
    let log = SmartLog::parse(&known).unwrap();
    assert_eq!((log.spare_percent, log.spare_threshold_percent, log.used_percent), (100, 99, 2));
    assert_eq!(log.written_bytes.unwrap() / 100_000_000_000, 321);
    let mut warm = page();
    // Bit 0 is the spare, which has its own field; bit 1 the temperature.
    warm[0] = 0b011;
    assert!(!SmartLog::parse(&warm).unwrap().is_degraded);
}

#[test]
fn a_page_without_figures_is_no_wear_of_zero() {
    let said = |page: &[u8; LOG_BYTES]| SmartLog::parse(page).unwrap_err().to_string();
    assert!(said(&[0; LOG_BYTES]).contains("reports no wear"));
    assert!(said(&[0xff; LOG_BYTES]).contains("255 % is not possible"));
    let mut new = [0; LOG_BYTES];
    (new[3], new[4]) = (100, 10);
    assert_eq!(SmartLog::parse(&new).unwrap().written_bytes, None);
}

#[test]
fn numbers_match_the_header() {
    assert_eq!((size_of::<AdminCommand>(), ADMIN), (72, 0xc048_4e41));
    // 128 words of four bytes, counted from zero.
    let mut page = [0; LOG_BYTES];
    let command = get_log_page(&mut page);
    assert_eq!((command.cdw10, command.namespace, command.timeout_ms), (0x007f_0002, 0xffff_ffff, 0));
}

#[test]
fn other_files_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = SmartLog::read(file.path()).unwrap_err();
    assert!(refused.to_string().ends_with("is not a device"), "{refused}");
    let missing = SmartLog::read(Path::new("/dev/no-such-nvme0")).unwrap_err();
    assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
    let foreign = SmartLog::read(Path::new("/dev/null")).unwrap_err();
    assert_eq!(foreign.raw_os_error(), Some(libc::ENOTTY), "{foreign}");
}

proptest! {
    #[test]
    fn any_page_is_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), LOG_BYTES)) {
        let page: [u8; LOG_BYTES] = bytes.try_into().unwrap();
        let Ok(log) = SmartLog::parse(&page) else {
            prop_assert!(page[3] > 100 || page[4] > 100 || page[3..6] == [0; 3]);
            return Ok(());
        };
        prop_assert!(log.spare_percent <= 100 && log.spare_threshold_percent <= 100);
        let decoded = [log.spare_percent, log.spare_threshold_percent, log.used_percent];
        prop_assert_eq!(decoded, [page[3], page[4], page[5]]);
        prop_assert!(log.written_bytes != Some(0));
    }

    #[test]
    fn units_are_thousands_of_512_bytes_and_saturate(units: u128, used in 1u8..=255) {
        let mut page = [0; LOG_BYTES];
        page[5] = used;
        page[48..64].copy_from_slice(&units.to_le_bytes());
        let exact = units.checked_mul(512_000).and_then(|bytes| u64::try_from(bytes).ok());
        let expected = exact.or(Some(u64::MAX)).filter(|&bytes| bytes > 0);
        prop_assert_eq!(SmartLog::parse(&page).unwrap().written_bytes, expected);
    }
}
