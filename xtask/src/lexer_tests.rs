//! What is code and what is not.

use super::strip;

#[test]
fn comments_vanish_and_lines_stay() {
    assert_eq!(strip("a // unsafe\nb"), "a          \nb");
    assert_eq!(strip("a /* x /* y */ z\n */ b"), "a               \n    b");
    assert_eq!(strip("/// doc {\nfn f() {}"), "         \nfn f() {}");
    assert_eq!(strip("a /* open {"), "a          ");
}

#[test]
fn strings_keep_their_quotes_only() {
    assert_eq!(strip(r#"f("a{b\"}", x)"#), r#"f("      ", x)"#);
    assert_eq!(strip(r#"f("", "\\", y)"#), r#"f("", "  ", y)"#);
    assert_eq!(strip("f(\"a\nb\")"), "f(\" \n \")");
    assert_eq!(strip(r#"b"}" c"}""#), r#"b" " c" ""#);
}

#[test]
fn raw_strings_end_at_their_own_delimiter() {
    assert_eq!(strip(r##"r#"a " { \"# }"##), r##"r#"        " }"##);
    assert_eq!(strip(r#"br"\" }"#), r#"br" " }"#);
    // A raw identifier is none, and a name that ends in r is no prefix.
    assert_eq!(strip("r#fn var \"x\""), "r#fn var \" \"");
}

#[test]
fn characters_are_told_from_lifetimes() {
    assert_eq!(strip("'{' '\\'' '\\u{7b}' '\"'"), " ".repeat(21));
    assert_eq!(strip("fn f<'a>(x: &'a str) {'x'}"), "fn f<'a>(x: &'a str) {   }");
    assert_eq!(strip("b'{' 'é'"), "b       ");
}

#[test]
fn every_line_feed_stays_in_any_prefix_of_a_difficult_text() {
    let text = "fn f<'a>() { r#\"x\n\"# ; '\\n'; \"\\\"\n\"; /* é\n /* \n */ */ b'x' } // ü\n'";
    for (end, _) in text.char_indices() {
        let prefix = &text[..end];
        let stripped = strip(prefix);
        assert_eq!(stripped.matches('\n').count(), prefix.matches('\n').count(), "{prefix:?}");
    }
}
