//! Addresses are checked before a request is sent.
use keepup_error::Diagnostic as _;

use super::*;

#[test]
fn addresses_are_parsed_and_extended() {
    for (text, below) in [
        ("s3://bucket", "s3://bucket/run 1"),
        ("s3://bucket/a/b/", "s3://bucket/a/b/run 1"),
        ("gs://bucket/a", "gs://bucket/a/run 1"),
        ("file:///tmp/a", "file:///tmp/a/run 1"),
    ] {
        let found = Location::parse(text).unwrap().below("run 1").to_string();
        assert_eq!(found.replace("%20", " "), below);
    }
}

#[test]
fn other_addresses_are_refused() {
    for (text, wanted) in [
        ("s3:///a", "no bucket"),
        ("file://host/a", "names a host"),
        ("http://host/a", "the scheme must be"),
        ("s3://bucket/a?b=c", "query"),
        ("s3://bucket/a//b", ""),
    ] {
        let refused = Location::parse(text).unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
}

#[test]
fn a_secret_in_an_address_is_not_repeated() {
    let refused = Location::parse("s3://key:secret@bucket/a").unwrap_err();
    assert!(!refused.to_string().contains("secret"), "{refused}");
    assert!(refused.hint().is_some());
}

#[test]
fn a_directory_that_does_not_exist_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::parse(&format!("file://{}/none", place.path().display())).unwrap();
    let refused = Store::open(&location, None).err().unwrap().to_string();
    assert!(refused.ends_with("the directory does not exist"), "{refused}");
}

#[test]
fn objects_are_written_and_read() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::parse(&format!("file://{}", place.path().display())).unwrap();
    let store = Store::open(&location, None).unwrap();
    assert!(store.head("a/b").unwrap().is_none() && store.get("a/b", 9).unwrap().is_none());
    store.put("a/b", Bytes::from_static(b"text")).unwrap();
    assert_eq!(store.head("a/b").unwrap().unwrap().size, 4);
    assert_eq!(store.get("a/b", 4).unwrap().unwrap().unwrap(), b"text");
    assert!(store.get("a/b", 3).unwrap().unwrap().unwrap_err().contains("longer than 3 bytes"));
}
