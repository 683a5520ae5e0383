//! Frames are extracted exactly, and truncated output is rejected.
use super::*;

const WHOLE: &str =
    "one\n\u{1}begin a\n{\"x\": 1}\n\u{1}end a 0\n\u{1}begin b\n\n\n\u{1}end b 3\ntwo\n\n\u{1}end script 7\n";

#[test]
fn parts_are_cut_out_to_the_byte() {
    let (status, stdout, parts) = parse(WHOLE).unwrap();
    assert_eq!((status, stdout.as_str()), (7, "one\ntwo\n"));
    assert_eq!(parts["a"], Part { status: 0, stdout: "{\"x\": 1}".into() });
    assert_eq!(parts["b"], Part { status: 3, stdout: "\n".into() });
}

#[test]
fn a_script_that_prints_nothing_has_an_empty_output() {
    assert_eq!(parse("\n\u{1}end script 0\n"), Some((0, String::new(), BTreeMap::new())));
}

#[test]
fn output_that_breaks_off_anywhere_is_not_whole() {
    for end in 0..WHOLE.len() {
        assert_eq!(parse(&WHOLE[..end]), None, "{:?}", &WHOLE[..end]);
    }
}
