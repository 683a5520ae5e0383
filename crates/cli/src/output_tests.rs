//! Command lines, log messages and hints.
use clap::Parser as _;
use keepup_error::Cause;

use super::{as_json, hint_of_flags, shell_command, with_hint};

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

#[test]
fn the_hint_of_a_flag_stands_before_the_reference_to_help() {
    let Err(error) = crate::Cli::try_parse_from(["keepup", "qualify", "csl", "--soak", "0s"]) else {
        panic!("0 s is no soak")
    };
    let hint = hint_of_flags(&error).unwrap();
    let plain = with_hint(&error.render().to_string(), &hint);
    let lines: Vec<&str> = plain.lines().collect();
    assert!(lines[0].starts_with("error: invalid value '0s' for '--soak <TIME>': "), "{plain}");
    assert_eq!(lines[1], format!("hint: {hint}"), "{plain}");
    assert_eq!(lines[2..], ["", "For more information, try '--help'."], "{plain}");
    assert!(plain.ends_with("'.\n"), "{plain:?}");
    // The same with colours.
    let coloured = with_hint(&error.render().ansi().to_string(), &hint);
    let (first, last) = (coloured.find("hint: ").unwrap(), coloured.find("For more information").unwrap());
    assert!(first < last, "{coloured:?}");
}

#[test]
fn a_hint_follows_a_text_without_a_reference() {
    assert_eq!(with_hint("error: no\n", "yes"), "error: no\nhint: yes\n");
    assert_eq!(with_hint("error: no", "y\u{1b}s"), "error: no\nhint: y\u{fffd}s");
}
