//! Each fault hits its access exactly once.
use super::*;

#[test]
fn a_fault_waits_for_its_file_its_offset_and_its_turn() {
    let mut all: Vec<Mischief> = ["a 100 1 flip-read", "a 100 0 lose", "b 5 0 move 4096"]
        .iter()
        .filter_map(|o| Mischief::parse(o))
        .collect();
    assert_eq!(all.len(), 3);
    let (a, b) = (OsStr::new("a"), OsStr::new("b"));
    assert_eq!(of_read(&mut all, a, 101, 50), None);
    assert_eq!(of_read(&mut all, b, 0, 500), None);
    assert_eq!(of_read(&mut all, a, 90, 11), None, "the first is let pass");
    assert_eq!(of_read(&mut all, a, 90, 10), None);
    assert_eq!(of_read(&mut all, a, 90, 11), Some(10));
    assert_eq!(of_read(&mut all, a, 90, 11), None, "once");
    assert_eq!(of_write(&mut all, b, 0, 4096), Fate::Moved(4096));
    assert_eq!(of_write(&mut all, a, 100, 1), Fate::Lost);
    assert_eq!(of_write(&mut all, a, 100, 1), Fate::Right);
    assert_eq!(Mischief::parse("a 1 2 burn"), None);
}
