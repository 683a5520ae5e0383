//! What is installed and what is not.

use super::*;

#[test]
fn a_missing_program_says_how_to_get_it() {
    let tool = Tool { program: "no-such-program-here", package: "some-package" };
    assert!(!tool.is_installed());
    assert_eq!(tool.version(), "not installed (apt-get install some-package)");
}

#[test]
fn a_program_is_found_and_asked() {
    assert!(Tool { program: "sh", package: "dash" }.is_installed());
    assert_eq!(first_line("sh", &["-c", "echo; echo one; echo two"]).as_deref(), Some("one"));
    assert_eq!(first_line("sh", &["-c", "echo three >&2"]).as_deref(), Some("three"));
    assert_eq!(first_line("no-such-program-here", &[]), None);
}

#[test]
fn a_version_is_a_line_with_a_number() {
    let found = lines("sh", &["-c", "echo usage; echo; echo Version: 2.00a >&2"]);
    assert_eq!(found, ["usage", "Version: 2.00a"]);
    let version = Tool { program: "bash", package: "bash" }.version();
    assert!(version.contains(char::is_numeric), "{version}");
}
