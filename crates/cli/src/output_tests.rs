//! Command lines and log messages.
use keepup_error::Cause;

use super::{as_json, shell_command};

fn shell(arguments: &[&str]) -> String {
    shell_command(arguments.iter().map(|argument| (*argument).to_owned()))
}

#[test]
fn a_command_can_be_copied_into_a_shell() {
    assert_eq!(
        shell(&["disk", "cache", "--volume", "/a b", "--x", ""]),
        "keepup disk cache --volume '/a b' --x ''"
    );
    assert_eq!(shell(&["it's"]), "keepup 'it'\\''s'");
}

fn message(text: &str) -> serde_json::Value {
    let line = as_json(&Cause::from_text(text), 1_700_000_000_012_345_678);
    assert!(!line.contains('\n'), "{line}");
    serde_json::from_str(&line).unwrap()
}

#[test]
fn a_message_becomes_one_object_with_its_level() {
    let object = message("listening on 127.0.0.1:7611");
    let time = "2023-11-14T22:13:20.012Z";
    let expected =
        serde_json::json!({ "time": time, "level": "info", "message": "listening on 127.0.0.1:7611" });
    assert_eq!(object, expected);
    for (text, level) in [("error: a", "error"), ("warning: a", "warning")] {
        let object = message(text);
        assert_eq!((&object["level"], &object["message"]), (&level.into(), &"a".into()));
    }
    assert_eq!(message("no error: a")["level"], "info");
}

#[test]
fn a_hint_has_its_own_key_and_lines_stay_within_one_object() {
    let object = message("error: cannot \"read\" it\n  because: it is gone\nhint: look\nelsewhere");
    assert_eq!(object["message"], "cannot \"read\" it\n  because: it is gone");
    assert_eq!(object["hint"], "look\nelsewhere");
    assert!(message("a\nb").get("hint").is_none());
}

#[test]
fn a_json_log_has_no_control_characters() {
    let text = "warning: a\u{9b}2J\u{202e}b\u{7f}";
    let line = as_json(&Cause::new(text), 0);
    assert!(line.is_ascii(), "{line}");
    assert_eq!(message(text)["message"], "a\u{9b}2J\u{202e}b\u{7f}", "escaping keeps the text");
}
