//! Facts of a tree of files.
use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// A host with one card, which has a PTP hardware clock.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/sys/kernel/osrelease", "6.12.1\n"),
        ("proc/meminfo", "MemTotal: 2048 kB\nMemFree: 1024 kB\nMemAvailable: 1024 kB\n"),
        ("proc/self/limits", "Max locked memory         8388608              8388608              bytes\n"),
        ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
        ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
        ("sys/class/net/eth4/mtu", "9000\n"),
        ("sys/class/net/eth4/speed", "100000\n"),
        ("sys/class/net/eth4/operstate", "up\n"),
        ("sys/class/net/eth4/device/ptp/ptp2/clock_name", "mlx5_ptp\n"),
        ("drivers/mlx5_core/bind", ""),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    symlink("../../../../../drivers/mlx5_core", root.path().join("sys/class/net/eth4/device/driver"))
        .unwrap();
    root
}

#[test]
fn facts_are_read() {
    let root = tree();
    let volume = tempfile::tempdir().unwrap();
    let names = BTreeSet::from(["eth4".to_owned()]);
    let facts = collect(root.path(), &[volume.path().to_owned()], &names);
    assert_eq!((facts.tool_version.as_str(), facts.message_version), (env!("CARGO_PKG_VERSION"), VERSION));
    assert_eq!((facts.kernel.as_deref(), facts.cores), (Some("6.12.1"), Some(2)));
    assert_eq!((facts.memory_bytes, facts.memlock.as_deref()), (Some(2 << 20), Some("8388608")));
    let card = InterfaceFacts {
        name: "eth4".to_owned(),
        mtu: Some(9_000),
        speed_mbit: Some(100_000),
        driver: Some("mlx5_core".to_owned()),
        state: Some("up".to_owned()),
        hardware_clock: Some("ptp2".to_owned()),
    };
    assert_eq!(facts.interfaces, [card]);
    assert!(facts.volumes[0].free_bytes.unwrap() <= facts.volumes[0].size_bytes.unwrap(), "{facts:?}");
}

#[test]
fn what_cannot_be_read_is_none() {
    let root = tempfile::tempdir().unwrap();
    let facts = collect(root.path(), &[], &BTreeSet::from(["eth4".to_owned()]));
    assert_eq!((facts.kernel, facts.cores, facts.memory_bytes, facts.memlock), (None, None, None, None));
    let card = &facts.interfaces[0];
    assert_eq!((card.mtu, card.speed_mbit, &card.driver, &card.hardware_clock), (None, None, &None, &None));
}

#[test]
fn an_interface_that_the_tree_does_not_have_is_left_out() {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(data_interfaces(tree().path(), Some(loopback), &[]), BTreeSet::new());
    let own = data_interfaces(Path::new("/"), Some(loopback), &[loopback]);
    assert_eq!(own, BTreeSet::from(["lo".to_owned()]));
}
