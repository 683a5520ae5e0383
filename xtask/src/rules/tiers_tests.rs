//! A test's reason to be ignored and its place say the same.

use super::check;
use crate::source::SourceFile;

fn lines(path: &str, text: &str) -> Vec<usize> {
    check(&SourceFile::new(path, text)).into_iter().map(|found| found.line).collect()
}

#[test]
fn reason_and_place_agree() {
    let test = |reason: &str| format!("#[test]\n#[ignore = \"{reason}\"]\nfn a() {{}}\n");
    let [plain, system, measured] = ["#[test]\nfn a() {}\n".to_owned(), test("system"), test("measured")];
    for (text, elsewhere, below) in [
        (&plain, &[][..], &[1][..]),
        (&system, &[], &[1]),
        (&measured, &[1], &[]),
        (&test("slow"), &[1], &[1]),
    ] {
        assert_eq!(lines("tests/disk/a.rs", text), elsewhere, "{text}");
        assert_eq!(lines("tests/disk/measured/a.rs", text), below, "{text}");
        assert!(lines("crates/disk/src/a_tests.rs", text).is_empty());
    }
    let both = format!("{system}{measured}");
    assert_eq!(lines("tests/disk/a.rs", &both), [4]);
    assert!(lines("tests/common.rs", &test("the file server of the other tests")).is_empty());
}
