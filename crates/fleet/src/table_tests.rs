//! Alignment.
use super::*;

#[test]
fn columns_are_aligned() {
    let rows = [["a", "rate"], ["longer", "1"]].map(|row| row.map(str::to_owned));
    assert_eq!(table(&rows, 1), "a       rate\nlonger     1\n");
}
