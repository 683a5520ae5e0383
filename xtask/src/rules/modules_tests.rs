//! Rules on modules, on small made-up crates.

use super::check;
use crate::source::SourceFile;

/// Advice for a crate of these files, paths below its `src/`.
fn broken(files: &[(&str, &str)]) -> Vec<String> {
    let file = |(path, text): &(&str, &str)| SourceFile::new(&format!("crates/plan/src/{path}"), text);
    let files: Vec<SourceFile> = files.iter().map(file).collect();
    check(&files)
        .into_iter()
        .map(|found| format!("{} {}: {}", found.file, found.rule, found.advice))
        .collect()
}

/// The circle of `names` below the file `parent`.
fn circle(parent: &str, names: &str) -> Vec<String> {
    let advice = format!("these use each other in a circle: {names}; move what they share below them");
    vec![format!("crates/plan/src/{parent} module-circle: {advice}")]
}

#[test]
fn siblings_that_use_each_other_are_found() {
    let found = broken(&[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "fn f(a: super::a::A) {}")]);
    assert_eq!(found, circle("lib.rs", "a, b"));
    let three = [
        ("lib.rs", ""),
        ("a.rs", "use crate::{x, b::{self, B}};"),
        ("b.rs", "pub(crate) use super::c::C;"),
        ("c.rs", "const N: u64 = crate::a::N;"),
    ];
    assert_eq!(broken(&three), circle("lib.rs", "a, b, c"));
}

#[test]
fn what_descendants_use_counts_for_their_module() {
    let files = [
        ("lib.rs", ""),
        ("a.rs", "mod deep;"),
        ("a/deep.rs", "use crate::b::B;"),
        ("b.rs", "use crate::a::A;"),
    ];
    assert_eq!(broken(&files), circle("lib.rs", "a, b"));
    let inner =
        [("main.rs", ""), ("a.rs", ""), ("a/x.rs", "use super::y::Y;"), ("a/y.rs", "use crate::a::x::X;")];
    assert_eq!(broken(&inner), circle("a.rs", "x, y"));
}

#[test]
fn a_re_export_does_not_hide_a_circle() {
    let files = [
        ("lib.rs", "mod a; mod b;\npub use a::{A as Other, Unused};"),
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::Other;"),
    ];
    assert_eq!(broken(&files), circle("lib.rs", "a, b"));
    // A re-export that stands for itself ends.
    assert_eq!(broken(&[("lib.rs", "pub use self::a;"), ("b.rs", "use crate::a::A;")]), Vec::<String>::new());
}

#[test]
fn parents_children_and_chains_are_fine() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;\nuse crate::a::A;"),
        ("a.rs", "mod child;\nuse self::child::Child;\nuse crate::b::B;"),
        ("a/child.rs", "use super::A;\nuse crate::a::limit;"),
        ("b.rs", "use std::fmt;\nuse crate::c::C;"),
        ("c.rs", "pub use keepup_results::b;\n// use crate::a::A;\nconst TEXT: &str = \"crate::b::B\";"),
    ];
    assert_eq!(broken(&files), Vec::<String>::new());
}

#[test]
fn modules_for_tests_do_not_count() {
    let files = [
        ("lib.rs", "#[cfg(test)]\nmod testing;\nmod a;"),
        ("a.rs", "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\nuse crate::b::B;"),
        ("a_tests.rs", "use crate::testing::help;"),
        ("testing.rs", "use crate::a::A;"),
        ("b.rs", ""),
        ("b_tests/machine.rs", "use crate::a::A;"),
    ];
    assert_eq!(broken(&files), Vec::<String>::new());
}
