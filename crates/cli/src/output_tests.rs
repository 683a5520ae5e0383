//! How commands are told.
use super::told_command;

fn told(arguments: &[&str]) -> String {
    told_command(arguments.iter().map(|argument| (*argument).to_owned()))
}

#[test]
fn a_command_can_be_copied_into_a_shell() {
    assert_eq!(
        told(&["disk", "cache", "--volume", "/a b", "--x", ""]),
        "keepup disk cache --volume '/a b' --x ''"
    );
    assert_eq!(told(&["it's"]), "keepup 'it'\\''s'");
}

#[test]
fn a_token_is_told_to_nobody() {
    let command = told(&["net", "tcp", "host", "--token", "secret", "--time", "1s", "--token=secret"]);
    assert_eq!(command, "keepup net tcp host --token ... --time 1s --token=...");
}
