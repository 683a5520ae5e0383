//! Rules on text, each with a file that keeps it and one that breaks it.

use super::check;
use crate::source::SourceFile;

fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
    check(&SourceFile::new(path, text)).into_iter().map(|found| (found.rule, found.line)).collect()
}

#[test]
fn a_short_file_with_a_purpose_keeps_all_rules() {
    assert_eq!(rules("crates/a/src/lib.rs", "//! Purpose.\n\nfn f() {}\n"), []);
    assert_eq!(
        rules("docs/a.md", "no purpose needed, and a line may be as long as it likes: ".repeat(5).as_str()),
        []
    );
}

#[test]
fn files_open_with_their_purpose_and_are_not_called_mod() {
    assert_eq!(rules("crates/a/src/b.rs", "use std::fs;\n"), [("file-purpose", 1)]);
    assert_eq!(rules("crates/a/src/b/mod.rs", "//! B.\n"), [("mod-rs", 1)]);
}

#[test]
fn lines_have_a_limit() {
    let wide = |count: usize| format!("//! {}\n", "é".repeat(count - 4));
    assert_eq!(rules("crates/a/src/b.rs", &wide(110)), []);
    assert_eq!(rules("crates/a/src/b.rs", &wide(111)), [("line-length", 1)]);
}

#[test]
fn paths_of_one_machine_are_found_in_any_file() {
    let path = concat!("/wo", "rk/");
    assert_eq!(rules("docs/a.md", &format!("x\nsee `{path}main`\n")), [("machine-path", 2)]);
    assert_eq!(rules("docs/a.md", &format!("docs/a.md{path}x and $HOME}}{path}")), []);
    assert_eq!(rules("profiles/a.toml", concat!("a = \"/ro", "ot/x\"\n")), [("machine-path", 1)]);
}
