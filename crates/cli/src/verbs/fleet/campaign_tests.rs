//! Texts and errors of hosts.
use super::*;

#[test]
fn a_reason_from_a_host_has_one_line_and_one_hint() {
    let text = "warning: slow\nerror: cannot use /a\n  because: no space\nhint: free\u{1b}[2J\nspace\n";
    let cause = one_line(text);
    assert_eq!(cause.to_string(), "error: cannot use /a   because: no space");
    assert_eq!(cause.hint().as_deref(), Some("free\u{fffd}[2J space"));
    assert_eq!(failed_run("daq1", "lost"), "daq1: lost");
    assert!(failed_run("daq1", text).ends_with(" no space (hint: free\u{fffd}[2J space)"));
    assert!(failed_run("daq1", &"x\n".repeat(100_000)).chars().count() < 1_100);
}

#[test]
fn only_errors_of_this_machine_end_the_campaign() {
    let found = [
        RunFailure::from(ReplyError::Malformed("no end".to_owned())),
        RunFailure::from(ReplyError::Io("a: no space".to_owned())),
        RunFailure::from(anyhow::anyhow!("cannot read the control socket")),
    ];
    let wanted = [
        RunFailure::Host("malformed answer: no end".to_owned()),
        RunFailure::Here("cannot store its result: a: no space".to_owned()),
        RunFailure::Here("cannot read the control socket".to_owned()),
    ];
    assert_eq!(found, wanted);
}
