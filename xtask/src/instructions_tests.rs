//! What callgrind prints is understood, and a rise is called one.
use super::*;

#[test]
fn the_count_is_found() {
    let text = "==12== \n==12== Events    : Ir\n==12== Collected : 123456\n==12== \n";
    assert_eq!(collected(text), Some(123_456));
    assert_eq!(collected("==12== I refs: 5"), None);
}

#[test]
fn a_rise_beyond_the_tolerance_is_told_from_less() {
    let before = json!({ "decode": 1000 });
    let before = before.as_object().unwrap();
    let at = |count| BTreeMap::from([("decode".to_owned(), count)]);
    assert!(!compare(before, &at(1049)).1);
    assert!(compare(before, &at(1051)).1);
    assert!(!compare(before, &at(10)).1);
    let (text, has_risen) = compare(&Map::new(), &at(10));
    assert!(text.contains("new") && !has_risen);
}
