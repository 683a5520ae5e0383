//! Which way of reading registers is the fastest.
use keepup_testkit::rule::{FOUR_OF_FOURTEEN, good_if};

use crate::common::directory_alone;
use crate::registers::ipbus::serve;
use crate::registers::read::{median, read};

/// Defect: a block is read word by word, so that it takes at least as long as packed reads.
#[test]
#[ignore = "measured"]
fn one_block_takes_less_than_packed_reads_of_as_many_registers() {
    let place = directory_alone();
    let (_board, address) = serve(place.path(), &[]);
    let target = format!("ipbus://{address}");
    FOUR_OF_FOURTEEN.check("seconds of packed reads and of a block", || {
        let found = read(place.path(), "compare", &target, &["--time", "10 s"]);
        let points = |way: usize| found["run"]["methods"][way]["points"].as_array().unwrap();
        let deepest = points(1).len().min(points(2).len()) - 1;
        let [packed, block] = [1, 2].map(|way| median(&points(way)[deepest]));
        good_if(block < packed, (packed, block))
    });
}
