//! Record of a simulated machine, and what changes the fingerprint.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Files of a machine with two sockets of two cores each, one core offline.
const FILES: &[(&str, &str)] = &[
    ("sys/class/dmi/id/sys_vendor", "Maker Inc.\n"),
    ("sys/class/dmi/id/product_name", "Box  9000\n"),
    ("sys/class/dmi/id/board_name", "X11\n"),
    ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t\t: fpu vme hypervisor sse\n"),
    ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "0"),
    ("sys/devices/system/cpu/cpu1/topology/core_id", "0"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu10/topology/physical_package_id", "1"),
    ("sys/devices/system/cpu/cpu10/topology/core_id", "0"),
    ("sys/devices/system/cpu/cpu11/online", "0"),
    ("sys/devices/system/cpu/cpufreq/boost", "1"),
    ("sys/devices/system/cpu/smt/active", "1\n"),
    ("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1"),
    ("sys/devices/system/node/node1/cpulist", "10"),
    ("sys/devices/system/node/online", "0-1"),
    ("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\nDirty: 5 kB\nHugepagesize: 2048 kB\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("proc/self/limits", "Max locked memory         8388608              unlimited            bytes\n"),
    ("proc/sys/kernel/osrelease", "6.12.1\n"),
    ("proc/cmdline", "quiet mitigations=auto\n"),
    ("etc/os-release", "NAME=Some\nPRETTY_NAME=\"Some Linux 12\"\n"),
    ("run/systemd/container", "docker\n"),
    ("proc/loadavg", "0.07 0.17 0.10 1/91 6070\n"),
    ("proc/sys/net/core/rmem_max", "212992\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("sys/class/net/bonding_masters", ""),
    ("sys/class/net/eth0/mtu", "9000\n"),
    ("sys/class/net/eth0/speed", "100000\n"),
    ("sys/class/net/eth0/operstate", "up\n"),
    ("sys/class/net/lo/mtu", "65536\n"),
    ("sys/class/net/lo/speed", "-1\n"),
    ("sys/class/net/veth12/mtu", "1500\n"),
    ("sys/block/sda/size", "2000\n"),
    ("sys/block/sda/device/model", "Disk 1\n"),
    ("sys/block/sda/queue/rotational", "0\n"),
    ("sys/block/sda/queue/scheduler", "[none] mq-deadline\n"),
    ("sys/block/sda/queue/logical_block_size", "512\n"),
    ("sys/block/sda/queue/write_cache", "write back\n"),
    ("volume/marker", ""),
    ("elsewhere/marker", ""),
    ("drivers/fastnet/x", ""),
    ("dev/sda", ""),
];

fn put(tree: &TempDir, path: &str, text: &str) {
    let path = tree.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn machine() -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        put(&tree, path, text);
    }
    let root = tree.path();
    let dev = fs::metadata(root.join("volume")).unwrap().dev();
    let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
    let mounts = format!("27 1 {number} / / rw,noatime - ext4 /dev/sda rw\n");
    put(&tree, "proc/self/mountinfo", &mounts);
    for (target, link) in [
        ("sys/block/sda", "sys/class/block/sda".to_owned()),
        ("sys/block/sda", format!("sys/dev/block/{number}")),
        ("drivers/fastnet", "sys/class/net/eth0/device/driver".to_owned()),
    ] {
        fs::create_dir_all(root.join(&link).parent().unwrap()).unwrap();
        symlink(root.join(target), root.join(link)).unwrap();
    }
    tree
}

fn record(tree: &TempDir) -> Environment {
    Environment::collect(&[tree.path().join("volume")], tree.path())
}

fn value<T>(value: T) -> Reading<T> {
    Reading::Value(value)
}

#[test]
fn the_box_and_its_processors() {
    let Environment { machine, cpu, .. } = record(&machine());
    assert_eq!(machine.product, value("Box 9000".into()));
    assert_eq!(machine.virtualised, value(true));
    assert_eq!(machine.container, "docker");
    assert_eq!(cpu.model, value("Fast CPU @ 3 GHz".into()));
    let counts = (cpu.logical_cores, cpu.physical_cores, cpu.sockets);
    assert_eq!(counts, (value(3), value(2), value(2)));
    assert_eq!(cpu.governor, value("performance, powersave".into()));
    assert_eq!(cpu.mitigations.value().unwrap()["meltdown"], "Mitigation: PTI");
}

#[test]
fn memory_and_kernel() {
    let Environment { memory, kernel, moment, .. } = record(&machine());
    assert_eq!((memory.total_bytes, memory.numa_nodes), (value(1_024_000), value(2)));
    assert_eq!(memory.transparent_huge_pages, value("madvise".into()));
    assert_eq!(memory.memlock_limit, value("8388608".into()));
    assert_eq!(kernel.distribution, value("Some Linux 12".into()));
    assert_eq!(moment.load_average, value([0.07, 0.17, 0.10]));
    assert_eq!(moment.dirty_bytes, value(5 * 1024));
}

#[test]
fn volumes_and_network() {
    let Environment { volumes, network, .. } = record(&machine());
    assert_eq!(volumes.len(), 1);
    assert_eq!(volumes[0].fs_type, value("ext4".into()));
    assert_eq!(volumes[0].mount_options, value("rw,noatime".into()));
    assert_eq!(volumes[0].device, value("sda".into()));
    let disk = &volumes[0].disks["sda"];
    assert_eq!((&disk.size_bytes, &disk.rotational), (&value(1_024_000), &value(false)));
    assert_eq!(disk.scheduler, value("none".into()));
    assert_eq!(disk.write_cache, value("write back".into()));
    assert_eq!(network.interfaces.keys().collect::<Vec<_>>(), ["eth0", "lo"]);
    let eth0 = &network.interfaces["eth0"];
    assert_eq!((&eth0.speed_mbit, &eth0.driver), (&value(100_000), &value("fastnet".into())));
    assert_eq!(network.tcp_rmem, value("4096 131072 6291456".into()));
}

#[test]
fn unreadable_items_carry_the_reason() {
    let Environment { kernel, network, cpu, .. } = record(&machine());
    let Reading::NotReadable(why) = &kernel.io_uring_disabled else { panic!("there is no such file") };
    assert!(why.contains("io_uring_disabled: No such file"), "{why}");
    let Reading::NotReadable(why) = &network.interfaces["lo"].speed_mbit else { panic!("-1 is no speed") };
    assert!(why.ends_with("it holds no whole number"), "{why}");
    assert_eq!(cpu.frequency_khz_max.value(), None);
}

#[test]
fn an_empty_machine_is_recorded_too() {
    let tree = tempfile::tempdir().unwrap();
    let record = Environment::collect(&[PathBuf::from("/no/such/volume")], tree.path());
    assert_eq!(record.machine.container, "none");
    assert_eq!(record.cpu.logical_cores.value(), None);
    assert!(record.volumes[0].disks.is_empty());
    assert_eq!(record.differences(&record), []);
}

#[test]
fn json_keeps_the_record() {
    let mut record = record(&machine());
    // Free space of the real temporary directory is a float that may be rounded in text.
    record.volumes[0].free = value(VolumeFree { bytes: 5, inodes: None, fill_percent: 12.5 });
    let json = serde_json::to_string(&record).unwrap();
    assert!(json.contains(r#""smt":{"value":true}"#), "{json}");
    assert!(json.contains(r#""io_uring_disabled":{"not_readable":"cannot read "#), "{json}");
    assert_eq!(serde_json::from_str::<Environment>(&json).unwrap(), record);
}

#[test]
fn the_moment_and_the_place_on_a_volume_do_not_move_the_fingerprint() {
    let tree = machine();
    let first = record(&tree);
    put(&tree, "proc/loadavg", "9 9 9 1/91 6070\n");
    put(&tree, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 1 kB\nHugepagesize: 2048 kB\n");
    let mut second = Environment::collect(&[tree.path().join("elsewhere")], tree.path());
    second.volumes[0].free = Reading::NotReadable("gone".into());
    assert_eq!(first.fingerprint(), second.fingerprint());
    let differences = first.differences(&second);
    assert!(differences.iter().all(|difference| !difference.lasting), "{differences:?}");
    let items: Vec<&str> = differences.iter().map(|difference| difference.item.as_str()).collect();
    for item in ["moment.available_bytes", "moment.load_average[0]", "volumes[0].free", "volumes[0].path"] {
        assert!(items.contains(&item), "{item} is not in {items:?}");
    }
}

#[test]
fn a_setting_moves_the_fingerprint_and_is_named() {
    let tree = machine();
    let first = record(&tree);
    put(&tree, "sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
    fs::remove_file(tree.path().join("sys/class/net/lo/mtu")).unwrap();
    let second = record(&tree);
    assert_ne!(first.fingerprint(), second.fingerprint());
    let differences = first.differences(&second);
    let expected = |item: &str, first: &str, second: &str| Difference {
        item: item.into(),
        first: first.into(),
        second: second.into(),
        lasting: true,
    };
    let mut lasting = differences.into_iter().filter(|difference| difference.lasting);
    let driver = expected("network.interfaces.lo.driver", "not readable", "absent");
    assert_eq!(lasting.next(), Some(driver));
    let scheduler = expected("volumes[0].disks.sda.scheduler", "none", "mq-deadline");
    assert_eq!(lasting.next_back(), Some(scheduler));
}

#[test]
fn the_reason_why_something_is_not_readable_does_not_move_the_fingerprint() {
    let mut record = record(&machine());
    let before = record.fingerprint();
    record.cpu.frequency_khz_max = Reading::NotReadable("another reason".into());
    assert_eq!(record.fingerprint(), before);
}

#[test]
fn the_fingerprint_is_written_as_sixteen_digits() {
    let fingerprint = record(&machine()).fingerprint();
    assert_eq!(fingerprint.len(), 16);
    assert!(fingerprint.bytes().all(|digit| digit.is_ascii_hexdigit()), "{fingerprint}");
}

#[test]
fn this_machine_is_recorded() {
    let record = Environment::collect(&[std::env::temp_dir()], Path::new("/"));
    assert!(record.kernel.release.value().is_some());
    assert!(record.volumes[0].free.value().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn any_contents_are_survived(text in ".*(\n.*){0,3}", chosen in 0..FILES.len()) {
        let tree = machine();
        put(&tree, FILES[chosen].0, &text);
        let record = record(&tree);
        prop_assert_eq!(record.differences(&record), []);
    }
}
