//! Texts that command terminals, reorder lines, or look like lines of keepup's own.
use super::{deserialize_line, deserialize_optional_line, json, lines, one_line, visible};

const HOSTILE: &str = "a\u{1b}]0;title\u{7}\nerror: forged\u{9b}31m\u{202e}b\u{e0041}\u{200b}\t\u{e4}";

#[derive(serde::Deserialize)]
struct Message {
    #[serde(deserialize_with = "deserialize_line")]
    why: String,
    #[serde(default, deserialize_with = "deserialize_optional_line")]
    hint: Option<String>,
}

#[test]
fn names_stay_as_they_are_unless_they_cannot_be_seen() {
    for name in ["it's", "say \"x\"", "back\\slash", "é", "run 1"] {
        assert_eq!(visible(name), name);
    }
    assert_eq!(visible("a\nb\t\u{202e}"), "a\\nb\\t\\u{202e}");
}

#[test]
fn a_text_of_a_peer_is_one_line_without_commands() {
    let rest = "\u{fffd}]0;title\u{fffd} error: forged\u{fffd}31m\u{fffd}b\u{fffd}\u{fffd} \u{e4}";
    assert_eq!(one_line(HOSTILE), format!("a{rest}"));
    assert_eq!(one_line("plain \u{e4}\u{1f600}\n"), "plain \u{e4}\u{1f600}");
    let long = one_line(&"x".repeat(1 << 20));
    assert_eq!((long.chars().count(), long.ends_with('…')), (1001, true));
}

#[test]
fn fields_of_messages_are_made_lines_as_they_are_read() {
    let message: Message = serde_json::from_str(r#"{"why": "a\nb", "hint": "\u001b[2J"}"#).unwrap();
    assert_eq!((message.why.as_str(), message.hint.as_deref()), ("a b", Some("\u{fffd}[2J")));
    let message: Message = serde_json::from_str(r#"{"why": "a", "hint": null}"#).unwrap();
    assert_eq!(message.hint, None);
    assert!(serde_json::from_str::<Message>(r#"{"why": "a"}"#).is_ok());
}

#[test]
fn lines_keep_their_breaks_and_nothing_else() {
    let shown = lines(HOSTILE);
    assert!(
        shown.contains("\nerror: forged") && shown.contains('\t') && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
    assert!(matches!(lines("two\nlines"), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn escaped_json_says_the_same() {
    let value = serde_json::json!({ HOSTILE: [HOSTILE, 1] });
    let text = serde_json::to_string_pretty(&value).unwrap();
    let escaped = json(&text);
    assert!(escaped.chars().all(|c| c == '\n' || super::is_printable(c)), "{escaped:?}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
}
