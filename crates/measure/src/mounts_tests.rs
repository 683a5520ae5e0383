//! Mounts from kernel text: escapes, optional fields, hidden mounts.

use proptest::prelude::*;

use super::*;

const MOUNTINFO: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
30 27 8:1 / /data rw,noatime shared:1 master:2 - xfs /dev/sda1 rw,noatime,attr2\n\
31 27 8:2 / /data/a\\040b rw - ext4 /dev/sdb1 rw\n\
32 27 0:40 / /data rw - tmpfs none rw,size=4k\n";

fn at(path: &str) -> Mount {
    holding(parse_mounts(MOUNTINFO), Path::new(path)).unwrap()
}

#[test]
fn the_longest_mount_point_wins_and_the_last_one_of_equals() {
    assert_eq!(at("/home/x").source, "/dev/vda");
    assert_eq!(at("/data/run").fs_type, "tmpfs");
    assert_eq!(at("/data/a b/run").source, "/dev/sdb1");
    // A prefix of the name is not a prefix of the path.
    assert_eq!(at("/database").source, "/dev/vda");
}

#[test]
fn options_are_listed_once() {
    assert_eq!(parse_mounts(MOUNTINFO)[1].options, "rw,noatime,attr2");
}

#[test]
fn escapes_are_turned_back_and_anything_else_is_kept() {
    assert_eq!(unescape(r"a\040b\134c"), r"a b\c");
    assert_eq!(unescape(r"a\9z\"), r"a\9z\");
}

#[test]
fn a_path_that_does_not_exist_is_named() {
    let error = Mount::of(Path::new("/"), Path::new("/no/such/place")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /no/such/place: "), "{error}");
}

#[test]
fn this_machine_mounts_something_over_a_temporary_directory() {
    let directory = tempfile::tempdir().unwrap();
    let mount = Mount::of(Path::new("/"), directory.path()).unwrap();
    assert!(directory.path().canonicalize().unwrap().starts_with(&mount.point));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in "([0-9]+ [0-9]+ [0-9:]+ / [^ ]* rw - [^ ]* [^ ]*( rw)?\n|.)*") {
        holding(parse_mounts(&text), Path::new("/"));
    }
}
