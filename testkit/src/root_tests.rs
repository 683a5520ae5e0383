//! A skipped test is one line that CI can count, or a failure.
use super::skip_line;

#[test]
fn a_skip_is_one_line_or_a_failure() {
    let why = "no emulator\nhint: cargo xtask guest prepare";
    let line = skip_line("boots", why, false).unwrap();
    assert_eq!(line, "SKIPPED: boots: no emulator hint: cargo xtask guest prepare");
    let failure = skip_line("boots", why, true).unwrap_err();
    assert!(failure.starts_with("boots cannot run here: no emulator") && !failure.contains("SKIPPED"));
}
