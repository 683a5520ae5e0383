//! Which links are looked at, and which lead somewhere.

use std::path::Path;

use super::{check, paths, targets};
use crate::source::SourceFile;

#[test]
fn links_are_found_outside_of_code() {
    let text =
        "[a](b.md) and [c](d/e.md#part \"title\")\n```\n[x](no.md)\n```\n`[x](no.md)` [y](z.md)\n[r]: f.md\n";
    assert_eq!(targets(text), [(1, "b.md"), (1, "d/e.md#part"), (5, "z.md"), (6, "f.md")]);
}

#[test]
fn links_to_the_web_and_within_the_page_are_left_alone() {
    assert_eq!(targets("[a](https://example.org/x.md) [b](#part) [c](mailto:a@b.c)\n"), []);
}

#[test]
fn a_link_is_resolved_from_its_document() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = |text| [SourceFile::new("src/a.md", text)];
    assert_eq!(check(root, &document("[a](main.rs) [b](../Cargo.toml#x) [c](/src/rules.rs) [d](rules)")), []);
    let found = check(root, &document("\n[a](Cargo.toml)"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].file.as_str(), found[0].line, found[0].rule), ("src/a.md", 2, "link"));
}

#[test]
fn paths_are_recognized_by_their_ends() {
    let text = "`src/main.rs` `src/rules/` `rules/` `cargo xtask tidy`\n```\n`no/no.rs`\n```\n\
                `profiles/NAME.toml` `/data/x.rs` `target/a/` `a.rs`\n";
    assert_eq!(paths(text), [(1, "src/main.rs"), (1, "src/rules/")]);
}

#[test]
fn a_path_on_a_map_exists_or_ends_one_that_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let other = SourceFile::new("crates/a/src/b/c.rs", "//! c\n");
    let map = SourceFile::new("ARCHITECTURE.md", "`src/rules.rs` `b/c.rs`\n`b/d.rs`\n");
    let page = SourceFile::new("docs/page.md", "`b/d.rs`\n");
    let found = check(root, &[other, map, page]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].file.as_str(), found[0].line, found[0].rule), ("ARCHITECTURE.md", 2, "path"));
}
