//! Disks that cannot be asked: they have a reason and no figure.
use super::*;

fn why(disk: &str) -> String {
    match disk_wear(disk) {
        Reading::NotReadable(why) => why,
        Reading::Value(wear) => panic!("{wear:?}"),
    }
}

#[test]
fn a_disk_that_cannot_be_asked_says_why() {
    // Another kind of disk is not even opened.
    assert_eq!(why("vda"), "only NVMe disks are asked");
    assert!(why("nvme99n99").starts_with("cannot open /dev/nvme99n99: "), "{}", why("nvme99n99"));
}

#[test]
fn a_volume_without_a_disk_has_none() {
    // The file system of /proc is on no device.
    let volume = VolumeDisks::of(Path::new("/proc"));
    assert_eq!((volume.path.as_path(), volume.disks.len()), (Path::new("/proc"), 0));
}
