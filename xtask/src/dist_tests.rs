//! What can be said of an archive without building one.

use super::*;

#[test]
fn what_is_packed_is_there() {
    for (from, _) in COPIED {
        assert!(Path::new("..").join(from).is_file(), "{from}");
    }
}

/// This test itself is linked with shared libraries; so is what it is run by.
#[test]
fn a_program_with_an_interpreter_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let own = std::env::current_exe().unwrap();
    let why = elf::refuse_dynamic(&own).unwrap_err().to_string();
    assert!(why.contains("requires shared libraries"), "{why}");
    let text = place.path().join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    assert!(elf::refuse_dynamic(&text).unwrap_err().to_string().contains("not a 64-bit ELF"));
    // The same program with its interpreter's entry made another.
    let mut bytes = fs::read(&own).unwrap();
    let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    for entry in 0..usize::from(bytes[56]) {
        let at = table + entry * usize::from(bytes[54]);
        if bytes[at] == 3 {
            bytes[at] = 0;
        }
    }
    fs::write(&text, &bytes).unwrap();
    elf::refuse_dynamic(&text).unwrap();
    fs::write(&text, &bytes[..table + 10]).unwrap();
    assert!(elf::refuse_dynamic(&text).is_err(), "a torn table");
}

#[test]
fn every_crate_that_is_linked_is_in_the_list_of_licences() {
    let found = licences::text(&metadata(GLIBC).unwrap()).unwrap();
    for linked in ["\nclap_builder ", "\nserde_json ", "\ntokio ", "\nrustix ", "ECharts", "Apache License"] {
        assert!(found.contains(linked), "{linked}");
    }
    for absent in ["\nserde_derive ", "\nproptest ", "\nkeepup-", "\nfuser "] {
        assert!(!found.contains(absent), "{absent}");
    }
}
