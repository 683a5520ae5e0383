//! Names that HDF5 allows and refuses.
use proptest::prelude::*;

use super::{key_names, link_names, master_names};

#[test]
fn names_that_hdf5_refuses_become_numbers() {
    let streams = ["camera", "a/b", ".", "..", "camera", "bytes", "new\nline", "stream-0", "", "ü"];
    let names = link_names((0u32..).zip(streams));
    let names: Vec<&str> = names.values().map(String::as_str).collect();
    let expected = [
        "camera", "stream-1", "stream-2", "stream-3", "stream-4", "stream-5", "stream-6", "stream-7",
        "stream-8", "ü",
    ];
    assert_eq!(names, expected);
}

#[test]
fn the_master_reserves_more_names() {
    let streams = || (0u32..).zip(["metadata", "entry_identifier", "camera"]);
    let names = |more| master_names(streams(), more).into_values().collect::<Vec<_>>();
    assert_eq!(names(&[]), ["stream-0", "stream-1", "camera"]);
    assert_eq!(names(&["camera"]), ["stream-0", "stream-1", "stream-2"]);
    assert_eq!(link_names(streams())[&0], "metadata", "segments allow it");
}

#[test]
fn keys_keep_names_that_hdf5_allows() {
    let names = key_names(["sample", "beam/energy", "entry-0", ".", "Größe"].into_iter());
    assert_eq!(names, ["sample", "entry-1", "entry-2", "entry-3", "Größe"]);
}

proptest! {
    #[test]
    fn every_stream_has_a_name_of_its_own(names in prop::collection::vec("\\PC{0,5}|stream-[0-9]|a", 0..20)) {
        let links = link_names((0u32..).zip(names.iter().map(String::as_str)));
        let mut distinct: Vec<&String> = links.values().collect();
        distinct.sort();
        distinct.dedup();
        prop_assert_eq!(distinct.len(), names.len());
        prop_assert!(links.values().all(|name| !name.contains('/') && !name.is_empty()));
    }
}
