//! Suggestions for mistyped names.

use super::*;

fn close(name: &str) -> Vec<String> {
    close_names(name, ["csl", "csl-old", "eiger2-16m", "eiger2-4m", "protodune", "romanis"].into_iter())
}

#[test]
fn few_wrong_letters_and_parts_of_names_are_found() {
    assert_eq!(close("romnis"), ["romanis"]);
    assert_eq!(close("Romanis"), ["romanis"]);
    assert_eq!(close("eiger"), ["eiger2-16m", "eiger2-4m"]);
    assert_eq!(close("eiger2-5m"), ["eiger2-4m", "eiger2-16m"]);
    assert_eq!(close("csk"), ["csl"]);
    assert_eq!(close("clx"), ["csl"]);
    assert_eq!(close("cls"), ["csl"]);
    assert!(close("spectrometer").is_empty());
    assert!(close("").is_empty());
}

#[test]
fn distance_counts_letters() {
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("kitten", "sitting"), 3);
    assert_eq!(distance("same", "same"), 0);
}
