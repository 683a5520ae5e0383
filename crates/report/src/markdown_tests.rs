//! Text of a summary is shown as it is, whatever it holds.

use super::{code, escape};

#[test]
fn markup_in_text_is_escaped() {
    assert_eq!(escape("a|b <script> *x* _y_\nz"), "a\\|b &lt;script&gt; \\*x\\* \\_y\\_ z");
}

#[test]
fn code_spans_hold_back_quotes() {
    assert_eq!(code("keepup"), "`keepup`");
    assert_eq!(code("a `b` c"), "``a `b` c``");
    assert_eq!(code("`b`"), "`` `b` ``");
}
