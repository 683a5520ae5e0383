//! The place of files, and the speed of a simulated program that writes there.
use std::time::Duration;

use keepup_stream::source::{EventSize, Protocol, Rate, SourcePlan};

use super::*;
use crate::ceiling::SourceCeiling;
use crate::record::{FileSource, Generator};
use crate::run;
use crate::testing::context;

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).unwrap().next().is_none()
}

#[test]
fn the_speed_of_the_simulated_program_is_measured_and_its_files_are_removed() {
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let plan = SourcePlan::new(EventSize::Fixed(100_000), Rate::Max).in_protocol(Protocol::Files);
    let time = Duration::from_millis(100);
    let store = FileStore { below: place.path().into(), keep_bytes: 1 << 20 };
    let rate = FileSource { store }.source_ceiling(&plan, time, &mut context()).unwrap();
    assert!(rate > 0.0 && is_empty(place.path()));
    assert!(run(&mut SourceCeiling::new(&plan, time), &mut context()).is_err(), "no directory");
}

#[test]
fn the_place_of_the_files_is_described() {
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let store = FileStore { below: place.path().into(), keep_bytes: 1 << 30 };
    let shared = store.describe(&[place.path().to_owned()]);
    assert!(shared.contains("the files shared a disk with volume") && shared.contains("1.07 GB"), "{shared}");
    let alone = store.describe(&[]);
    assert!(alone.contains("were not on a disk of the recording"), "{alone}");
    let unknown = store.describe(&[place.path().join("missing")]);
    assert!(unknown.contains("unknown whether"), "{unknown}");
}

#[test]
fn a_name_with_a_comma_is_refused() {
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let below = place.path().join("a,b");
    fs::create_dir(&below).unwrap();
    let store = FileStore { below, keep_bytes: 1 };
    let folder = TrialFolder::create(Some(&store), Id::random().unwrap()).unwrap();
    let refused = folder.address().unwrap_err().to_string();
    assert!(refused.contains("contains a comma"), "{refused}");
    folder.remove().unwrap();
}
