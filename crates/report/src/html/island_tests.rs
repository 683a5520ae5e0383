//! Data islands: whatever text is in them, the page around them stays whole and the text the same.

use serde_json::{Value, json};

use super::text;

#[test]
fn no_text_ends_the_element_or_begins_a_comment() {
    let hostile = "</script><!-- <script>alert(1)</script> ]]> & \u{2028}\u{2029} \" \\ \u{0}";
    let island = text(&json!({ hostile: [hostile] }));
    for broken in ["<", ">", "&", "\u{2028}", "\u{2029}"] {
        assert!(!island.contains(broken), "{broken:?} in {island}");
    }
    assert_eq!(serde_json::from_str::<Value>(&island).ok(), Some(json!({ hostile: [hostile] })));
}
