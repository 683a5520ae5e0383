//! Commas in paths.
use super::*;

#[test]
fn a_comma_in_a_path_is_doubled() {
    for (text, wanted) in [
        ("a", ("a", "")),
        ("a,b=c,d", ("a", "b=c,d")),
        ("a,,b", ("a,b", "")),
        ("a,,,b=c", ("a,", "b=c")),
        (",,,,x,", (",,x", "")),
    ] {
        assert_eq!(split_path(text), (wanted.0.to_owned(), wanted.1), "{text}");
    }
    for path in ["/data/a,b", ",", "a,,b", "plain"] {
        assert_eq!(split_path(&path_in_address(path)), (path.to_owned(), ""));
    }
}
