//! Reasons for refusing a volume, by exit code.
use super::*;

fn trouble(path: &Path, bytes: u64) -> VolumeTrouble {
    match check(&[path.to_path_buf()], bytes) {
        Err(WorkloadError::Volume { trouble, .. }) => trouble,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn refuses_what_is_missing_unsafe_or_full() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(trouble(&directory.path().join("no"), 0), VolumeTrouble::Missing);
    assert_eq!(trouble(&file, 0), VolumeTrouble::Missing);
    assert_eq!(trouble(Path::new("/"), 0), VolumeTrouble::Unsafe);
    assert_eq!(trouble(Path::new("/etc"), 0), VolumeTrouble::Unsafe);
    assert_eq!(trouble(directory.path(), u64::MAX), VolumeTrouble::Unable);
}

#[test]
fn takes_a_directory_once_and_leaves_nothing_there() {
    let directory = tempfile::tempdir().unwrap();
    let volume = directory.path().to_path_buf();
    let checked = check(std::slice::from_ref(&volume), 0).unwrap();
    assert!(checked[0].usable_bytes > 0);
    assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 0);
    assert!(check(&[volume.clone(), volume.join(".")], 0).is_err());
}

#[test]
fn volumes_on_one_disk_give_a_warning() {
    let (a, b) = (tempfile::tempdir_in(".").unwrap(), tempfile::tempdir_in(".").unwrap());
    let volumes = [a.path().to_owned(), b.path().to_owned()];
    assert!(common_disks(&volumes[..1]).is_empty());
    if Device::under(Path::new("/"), a.path()).is_ok_and(|device| !device.disks.is_empty()) {
        let warnings = common_disks(&volumes);
        assert!(
            warnings.len() == 1 && warnings[0].contains(&volumes[1].display().to_string()),
            "{warnings:#?}"
        );
    }
    assert!(common_disks(&["/proc".into(), "/sys".into()]).is_empty(), "they are on no disk");
}

#[test]
fn volumes_of_one_file_system_share_its_free_space() {
    let home = tempfile::tempdir().unwrap();
    let volumes = ["a", "b", "c"].map(|name| home.path().join(name));
    volumes.iter().for_each(|volume| std::fs::create_dir(volume).unwrap());
    let usable = check(&volumes, 0).unwrap()[0].usable_bytes;
    let each = usable * 2 / 5;
    check_together(&volumes[..2], each).unwrap();
    check(&volumes, each).unwrap();
    let error = check_together(&volumes, each).unwrap_err();
    assert!(matches!(error, WorkloadError::Volume { trouble: VolumeTrouble::Unable, .. }), "{error}");
    let usable_each = usable_bytes_each(&check(&volumes, 0).unwrap());
    assert!(usable_each < usable / 2 && usable_each > usable / 4, "{usable_each} of {usable}");
}
