//! A page of arbitrary bytes, and a right page with arbitrary bytes laid over it: judged, whatever they are.
#![no_main]

use keepup_soak::stamp::{PAGE_BYTES, SECTOR_BYTES, Stamp, judge};
use libfuzzer_sys::fuzz_target;

const HERE: Stamp = Stamp { run: 7, file: 1, offset: 1 << 20, generation: 3 };

fuzz_target!(|data: &[u8]| {
    let mut right = vec![0; PAGE_BYTES];
    HERE.fill(&mut right);
    assert!(judge(&right, HERE, 2).is_none());
    let mut page = data.to_vec();
    page.resize(PAGE_BYTES, 0);
    assert_eq!(judge(&page, HERE, 2).is_none(), page == right);
    for sector in page.chunks(SECTOR_BYTES) {
        let _ = Stamp::read(sector);
    }
    let _ = Stamp::read(data);
    // Where and with what is said by the data.
    let Some((at, laid)) = data.split_first_chunk::<2>() else { return };
    let from = usize::from(u16::from_le_bytes(*at)) % PAGE_BYTES;
    let end = (from + laid.len()).min(PAGE_BYTES);
    let mut page = right.clone();
    page[from..end].copy_from_slice(&laid[..end - from]);
    assert_eq!(judge(&page, HERE, 2).is_none(), page == right);
});
