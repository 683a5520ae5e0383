//! Arbitrary bytes as the SMART log page of an NVMe device.
#![no_main]

use keepup_sys::nvme::{LOG_BYTES, SmartLog};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut page = [0; LOG_BYTES];
    let bytes = data.len().min(LOG_BYTES);
    page[..bytes].copy_from_slice(&data[..bytes]);
    if let Ok(log) = SmartLog::parse(&page) {
        assert!(log.spare_percent <= 100 && log.spare_threshold_percent <= 100);
        assert_ne!(log.written_bytes, Some(0));
    }
});
