//! Directory operations used by a recorder.
use super::*;

const ROOT: u64 = 1;

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

fn file() -> Node {
    Node::File(Vec::new())
}

#[test]
fn bytes_are_where_they_were_written_and_zero_elsewhere() {
    let mut tree = Tree::new();
    let number = tree.add(ROOT, name("a"), file()).unwrap();
    tree.write(number, 5, b"xyz").unwrap();
    assert_eq!(tree.read(number, 3, 4).unwrap(), b"\0\0xy");
    tree.resize(number, 6).unwrap();
    assert_eq!(tree.read(number, 0, 100).unwrap(), b"\0\0\0\0\0x");
    assert_eq!(tree.read(number, 6, 1).unwrap(), b"");
    assert!(tree.read(ROOT, 0, 1).is_err());
}

#[test]
fn a_name_is_given_once_and_a_removed_file_keeps_its_bytes() {
    let mut tree = Tree::new();
    let inner = tree.add(ROOT, name("d"), Node::empty_directory()).unwrap();
    let number = tree.add(inner, name("a"), file()).unwrap();
    assert!(tree.add(inner, name("a"), file()).is_err());
    assert!(tree.remove(ROOT, name("d")).is_err(), "it is not empty");
    tree.write(number, 0, b"x").unwrap();
    tree.remove(inner, name("a")).unwrap();
    assert!(tree.lookup(inner, name("a")).is_err());
    assert_eq!(tree.bytes(number).unwrap(), b"x");
    tree.remove(ROOT, name("d")).unwrap();
}

#[test]
fn a_rename_replaces_what_had_the_name() {
    let mut tree = Tree::new();
    let inner = tree.add(ROOT, name("d"), Node::empty_directory()).unwrap();
    let new = tree.add(ROOT, name("new"), file()).unwrap();
    tree.add(inner, name("old"), file()).unwrap();
    tree.rename((ROOT, name("new")), (inner, name("old"))).unwrap();
    assert_eq!(tree.lookup(inner, name("old")).unwrap(), new);
    assert!(tree.lookup(ROOT, name("new")).is_err());
    tree.rename((inner, name("old")), (inner, name("old"))).unwrap();
    assert_eq!(tree.lookup(inner, name("old")).unwrap(), new);
    tree.add(ROOT, name("e"), Node::empty_directory()).unwrap();
    assert!(tree.rename((ROOT, name("e")), (ROOT, name("d"))).is_err(), "it is not empty");
}
