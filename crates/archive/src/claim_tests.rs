//! Two recordings of one name.
use keepup_recording::fixture::manifest;

use super::*;
use crate::store::Location;

fn open(place: &tempfile::TempDir) -> Store {
    Store::open(&Location::parse(&format!("file://{}", place.path().display())).unwrap(), Some("run"))
        .unwrap()
}

fn recording(id: u8) -> Manifest {
    Manifest { recording: Id([id; 16]), ..manifest(Vec::new(), 0) }
}

#[test]
fn a_name_belongs_to_the_first_recording() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    claim(&store, &recording(1)).unwrap();
    let refused = claim(&store, &recording(2)).unwrap_err();
    assert!(matches!(refused, ArchiveError::Taken { .. }), "{refused}");
    claim(&store, &recording(1)).unwrap();
}

#[test]
fn a_manifest_that_appears_after_the_look_is_not_replaced() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    let text = |id| serde_json::to_vec_pretty(&recording(id)).unwrap();
    assert!(owner(&store).unwrap().is_none());
    store.create(MANIFEST_FILE, text(2).into()).unwrap();
    store.create(MANIFEST_FILE, text(1).into()).unwrap();
    assert!(matches!(check_owner(&store, Id([1; 16])), Err(ArchiveError::Taken { .. })));
    check_owner(&store, Id([2; 16])).unwrap();
}

#[test]
fn a_lost_manifest_belongs_to_nobody_and_a_damaged_one_is_said() {
    let place = tempfile::tempdir().unwrap();
    let store = open(&place);
    assert!(matches!(check_owner(&store, Id([1; 16])), Err(ArchiveError::Taken { .. })));
    for text in ["", "{", "{}", "[1]", "{\"recording\": 7}", "<html>Log in</html>"] {
        store.put(MANIFEST_FILE, text.into()).unwrap();
        let refused = claim(&store, &recording(1)).unwrap_err();
        assert!(refused.to_string().contains("keepup.json: it is not a manifest: "), "{text}: {refused}");
        assert!(matches!(check_owner(&store, Id([1; 16])), Err(ArchiveError::NotAManifest { .. })), "{text}");
    }
}
