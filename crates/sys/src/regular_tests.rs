//! Pipes, links, directories and files that are too large, opened as results.
use std::io::{ErrorKind, Read as _, Write as _};

use keepup_testkit::pipe;

use super::{is_link, open, open_to_append, open_to_write, read_text};

#[test]
fn a_regular_file_is_read_written_and_appended_to() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    std::fs::write(&path, "one").unwrap();
    let mut text = String::new();
    open(&path).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "one");
    open_to_write(&path).unwrap().write_all(b"two").unwrap();
    open_to_append(&path).unwrap().write_all(b"three").unwrap();
    assert_eq!(read_text(&path, 8).unwrap(), "twothree");
}

#[test]
fn a_pipe_a_directory_and_a_link_are_refused_at_once() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    pipe(&at("pipe"));
    std::fs::create_dir(at("directory")).unwrap();
    std::fs::write(at("file"), "x").unwrap();
    std::os::unix::fs::symlink("file", at("link")).unwrap();
    std::os::unix::fs::symlink("pipe", at("link-to-pipe")).unwrap();
    for opened in [open, open_to_write, open_to_append] {
        assert_eq!(opened(&at("pipe")).unwrap_err().kind(), ErrorKind::InvalidInput);
        let directory = opened(&at("directory")).unwrap_err().kind();
        assert!(matches!(directory, ErrorKind::InvalidInput | ErrorKind::IsADirectory), "{directory}");
        for link in ["link", "link-to-pipe"] {
            assert!(is_link(&opened(&at(link)).unwrap_err()), "{link}");
        }
        assert_eq!(opened(&at("missing")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("large");
    // A sparse file of one terabyte.
    std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(read_text(&path, 1 << 20).unwrap_err().kind(), ErrorKind::FileTooLarge);
}
