//! A shell reads what was quoted as one argument.
use std::process::Command;

use super::*;
use crate::printable::lines;

#[test]
fn a_shell_reads_one_argument() {
    for argument in [
        "/data/run-1",
        "/data/run 1",
        "",
        "$(id)",
        "a;b",
        "it's",
        "'",
        "\"\\`*?~",
        "é",
        "/data/👩\u{200d}🔬/run 1",
        "a\tb\nc",
        "-\u{7}1",
        "\u{202e}50%d \\n it's `$HOME`\"",
    ] {
        let command = quoted(argument);
        assert_eq!(lines(&command), command, "output is not changed");
        assert!(!command.contains(['\n', '\t']), "{command}");
        let script = format!("printf %s {command}");
        let run = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap(), argument, "{script}");
    }
    assert_eq!(quoted("/data/run-1"), "/data/run-1");
}

#[test]
fn line_breaks_at_the_end_stay() {
    for argument in ["/data/a\n", "it's 50% \\n \"$HOME\"\u{7}7\n\n", "\n", "-a\n"] {
        let command = quoted(argument);
        assert_eq!(lines(&command), command, "output is not changed");
        assert!(command.starts_with("$'") && !command.contains('\n'), "{command}");
        let script = format!("printf %s {command}");
        let run = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap(), argument, "{script}");
    }
    // Control: every shell knows the form for other line breaks.
    assert!(quoted("a\nb").starts_with("\"$(printf "));
}
