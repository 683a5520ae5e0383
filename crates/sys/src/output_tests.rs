//! Output files on a device without space.
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::Path;

use super::{finish, write};

#[test]
fn a_full_device_is_an_error_also_of_what_was_only_buffered() {
    let full = Path::new("/dev/full");
    assert_eq!(write(full, b"text").unwrap_err().kind(), ErrorKind::StorageFull);
    let mut out = BufWriter::new(File::create(full).unwrap());
    out.write_all(b"text").unwrap();
    assert_eq!(finish(out).unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn a_file_is_replaced_and_a_device_needs_no_flush() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    write(&path, b"a long text").unwrap();
    write(&path, b"text").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"text");
    write(Path::new("/dev/null"), b"text").unwrap();
}
