//! The rule on words: where it looks, and what it takes for a word.

use super::check;
use crate::source::SourceFile;

fn lines(path: &str, text: &str) -> Vec<usize> {
    check(&SourceFile::new(path, text)).into_iter().map(|found| found.line).collect()
}

#[test]
fn comments_literals_and_pages_are_searched_code_is_not() {
    let text = "//! Purpose.\n// What is told.\nfn told() { f(\"told\") }\nlet told = 1;\n/* told */\n";
    assert_eq!(lines("crates/a/src/lib.rs", text), [2, 3, 5]);
    assert_eq!(lines("docs/a.md", "Whoever reads\nan estimate\n"), [1]);
}

#[test]
fn only_whole_words_count() {
    assert_eq!(lines("docs/a.md", "retold, deskpad, mannered, newcrowd\n"), [0; 0]);
    assert_eq!(lines("docs/a.md", "a desk.\n"), [1]);
}

#[test]
fn tests_data_and_history_may_say_anything() {
    for path in ["crates/a/src/b_tests.rs", "tests/a.rs", "docs/journal/1.md", "docs/adr/1.md", "a.json"] {
        assert_eq!(lines(path, "//! told\n"), [0; 0], "{path}");
    }
}
