//! Keys and lines of a small text.

use proptest::prelude::*;

use super::*;

const TEXT: &str = r#"name = "x"

[event]
size = "1 B"

[source]
burst = { on = "1 s",
  off = "2 s" }
[[reference]]
what = "a"
[[reference]]
what = 7
"#;

#[test]
fn keys_have_lines() {
    assert_eq!(line_of_key(TEXT, "name"), Some(1));
    assert_eq!(line_of_key(TEXT, "event.size"), Some(4));
    assert_eq!(line_of_key(TEXT, "source.burst"), Some(7));
    assert_eq!(line_of_key(TEXT, "source.burst.off"), Some(8));
    assert_eq!(line_of_key(TEXT, "source.rate"), None);
    assert_eq!(line_of_key(TEXT, "name.size"), None);
    assert_eq!(line_of_key("a = = 1", "a"), None);
}

#[test]
fn spans_have_keys() {
    let key = |part: &str| {
        let start = TEXT.find(part).unwrap();
        key_at(TEXT, &(start..start + part.len()))
    };
    assert_eq!(key("\"x\""), "name");
    assert_eq!(key("\"1 B\""), "event.size");
    assert_eq!(key("\"2 s\""), "source.burst.off");
    assert_eq!(key("off"), "source.burst.off");
    assert_eq!(key("7"), "reference.what");
    assert_eq!(key_at("a = = 1", &(0..1)), "");
}

#[test]
fn places_read_like_those_of_a_compiler() {
    let place = |line| SourceLocation { origin: "profiles/x.toml".to_owned(), line }.to_string();
    assert_eq!(place(Some(7)), "profiles/x.toml:7");
    assert_eq!(place(None), "profiles/x.toml");
}

proptest! {
    #[test]
    fn no_text_and_span_panics(
        text in "[a-c\\[\\]={}\". \n1]{0,60}", start in 0..70usize, length in 0..70usize,
    ) {
        key_at(&text, &(start..start + length));
        line_of_key(&text, "a.b");
        line_of_offset(&text, start);
    }
}
