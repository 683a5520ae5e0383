//! Memory from the kernel's text.

use proptest::prelude::*;

use super::*;

const MEMINFO: &str = "\
    MemTotal:       24684096 kB\nMemFree:        22156092 kB\nMemAvailable:   23541248 kB\n\
    Cached:          1545412 kB\nSwapCached:            7 kB\nSwapTotal:             1 kB\n\
    Dirty:            153724 kB\nWriteback:            12 kB\nWritebackTmp:          9 kB\n\
    HugePages_Total:      64\nHugePages_Free:       60\nHugepagesize:       2048 kB\n";

#[test]
fn every_figure_is_found_and_counted_in_bytes() {
    let expected = Memory {
        total_bytes: 24_684_096 * 1024,
        available_bytes: 23_541_248 * 1024,
        cached_bytes: 1_545_412 * 1024,
        dirty_bytes: 153_724 * 1024,
        writeback_bytes: 12 * 1024,
        swap_bytes: 1024,
        huge_page_bytes: 2 << 20,
        huge_pages: 64,
        huge_pages_free: 60,
    };
    assert_eq!(parse_memory(MEMINFO), Some(expected));
}

#[test]
fn without_a_total_there_is_no_answer() {
    assert_eq!(parse_memory("MemFree: 5 kB\n"), None);
}

#[test]
fn this_machine_has_memory() {
    let memory = Memory::read(Path::new("/")).unwrap();
    assert!(memory.total_bytes > memory.dirty_bytes);
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "((MemTotal|Dirty|Cached): *[0-9]{0,25}( kB)?\n|.)*") {
        parse_memory(&text);
    }
}
