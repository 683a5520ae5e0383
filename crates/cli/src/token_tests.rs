//! Accepted token files.
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn a_file_that_others_can_read_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "0123456789abcdef\n").unwrap();
    for (mode, is_private) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let found = read(Some(&path), "KEEPUP_NO_SUCH_VARIABLE");
        match found {
            Ok(token) => assert!(is_private && token.unwrap().is(b"0123456789abcdef"), "{mode:o}"),
            Err(why) => {
                assert!(!is_private && why.is::<SharedTokenFile>(), "{mode:o}: {why}");
                assert!(crate::exit::hint(&why).unwrap().starts_with("chmod 600 "), "{why}");
            }
        }
    }
    assert!(read(None, "KEEPUP_NO_SUCH_VARIABLE").unwrap().is_none());
}

#[test]
fn generated_tokens_differ() {
    let (first, second) = (generate().unwrap(), generate().unwrap());
    assert!(!first.is(second.reveal().as_bytes()));
}
