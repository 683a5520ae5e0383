//! Comparison of access methods.
use keepup_testkit::rule::{FOUR_OF_FOURTEEN, good_if};

use crate::common::busy_directory;
use crate::registers::ipbus::serve;
use crate::registers::read::{median, read};

/// Defect: a block is read word by word, and takes at least as long as packed reads.
#[test]
#[ignore = "measured"]
fn a_block_read_is_faster_than_packed_reads() {
    let place = busy_directory();
    let (_board, address) = serve(place.path(), &[]);
    let target = format!("ipbus://{address}");
    FOUR_OF_FOURTEEN.check("seconds of packed reads and of a block", || {
        let found = read(place.path(), "compare", &target, &["--time", "10 s"]);
        let points = |method: usize| found["run"]["methods"][method]["points"].as_array().unwrap();
        let deepest = points(1).len().min(points(2).len()) - 1;
        let [packed, block] = [1, 2].map(|method| median(&points(method)[deepest]));
        good_if(block < packed, (packed, block))
    });
}
