//! Disk tests and recordings on XFS, ext4, and btrfs over one, two and four devices: bytes are
//! conserved, and the environment record names the file system.
use keepup_testkit::filesystem::{FileSystemKind, LoopFileSystem};
use keepup_testkit::root::{allowed, skip};
use serde_json::Value;

use crate::common::{directory, json, keepup};

fn bytes(phase: &Value) -> u64 {
    phase["bytes"].as_u64().unwrap()
}

#[test]
#[ignore = "system"]
fn bytes_are_conserved_on_every_file_system() {
    let test = "bytes_are_conserved_on_every_file_system";
    if !allowed(test) {
        return;
    }
    let place = directory();
    let here = place.path();
    for kind in FileSystemKind::ALL {
        let disk = match LoopFileSystem::mount(kind, &here.join(format!("{kind:?}"))) {
            Ok(disk) => disk,
            Err(why) => {
                skip(test, &format!("{kind:?}: {why}"));
                continue;
            }
        };
        let volume = disk.path().to_str().unwrap();
        let arguments =
            ["disk", "concurrent", "--files", "2", "--size", "16 MiB", "--json", "--volume", volume];
        for more in [&[][..], &["--access", "buffered", "--engine", "mmap", "--space", "new"]] {
            let run = keepup(here, &[&arguments[..], more].concat());
            assert_eq!(run.code(), 0, "{kind:?}: {run:#?}");
            let found = json(&run);
            for phase in found["runs"][0]["phases"].as_array().unwrap() {
                assert_eq!(bytes(&phase["parts"][0]), 16 << 20, "{kind:?}: {phase:#}");
                let parts: u64 = phase["parts"].as_array().unwrap().iter().map(bytes).sum();
                assert_eq!(parts, bytes(phase), "{kind:?}: {phase:#}");
            }
            let named = &found["environment"]["volumes"][0];
            let text = named.to_string();
            assert!(text.contains(&format!("\"{}\"", kind.fs_type())), "{kind:?}: {named:#}");
            assert_eq!(named["disks"].as_object().unwrap().len(), kind.devices(), "{kind:?}: {named:#}");
            let raid =
                kind.profile().map(|profile| format!("btrfs {profile} over {} device", kind.devices()));
            assert!(raid.is_none_or(|raid| text.contains(&raid)), "{kind:?}: {named:#}");
        }
        let testdisk =
            keepup(here, &["disk", "testdisk", "--quick", "--direct", "--json", "--volume", volume]);
        assert_eq!(testdisk.code(), 0, "{kind:?}: {testdisk:#?}");
        let all: u64 = json(&testdisk)["runs"][0]["phases"].as_array().unwrap().iter().map(bytes).sum();
        assert_eq!(all, 2 * (130 << 20), "{kind:?}");
        assert_eq!(
            std::fs::read_dir(disk.path())
                .unwrap()
                .filter(|e| {
                    // ext4 has the directory lost+found.
                    e.as_ref().unwrap().file_name() != "lost+found"
                })
                .count(),
            0,
            "{kind:?}: nothing is left"
        );
    }
}
