//! Causes keep text and hint apart.
use super::Cause;

#[test]
fn a_cause_displays_without_its_hint() {
    let cause = Cause::new("no volume given").with_hint("--volume DIR");
    assert_eq!(cause.to_string(), "no volume given");
    assert_eq!(cause.hint().as_deref(), Some("--volume DIR"));
    let outer = cause.map(|what| format!("cannot record: {what}"));
    assert_eq!(outer.to_string(), "cannot record: no volume given");
    assert_eq!(outer.hint().as_deref(), Some("--volume DIR"));
}

#[test]
fn one_text_carries_both_and_is_taken_apart_again() {
    for cause in [Cause::new("a\nb"), Cause::new("a").with_hint("b\nc"), Cause::new("")] {
        assert_eq!(Cause::from_text(&cause.to_text()), cause);
    }
    assert_eq!(Cause::new("a").with_hint("b").to_text(), "a\nhint: b");
}

#[test]
fn an_empty_hint_is_none() {
    assert_eq!(Cause::new("a").with_hint(""), Cause::new("a"));
    assert_eq!(Cause::from_text("a\nhint: "), Cause::new("a"));
}
