//! Call numbers match the driver's header; other files are refused.
use super::*;

#[test]
fn numbers_match_the_header() {
    // _IOR(0xAE, 3, 32 bytes) and _IOW(0xAE, 4, 32 bytes).
    assert_eq!(size_of::<Master>(), 32);
    assert_eq!((GET_MASTER, SET_MASTER), (0x8020_ae03, 0x4020_ae04));
}

#[test]
fn a_file_that_is_not_a_window_is_refused() {
    let file = tempfile::tempfile().unwrap();
    let why = master(&file).unwrap_err();
    assert!(why.raw_os_error() == Some(libc::ENOTTY) && why.to_string().contains("settings"), "{why}");
    assert!(set_master(&file, &Master::default()).is_err());
}
