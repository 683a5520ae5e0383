//! Settings of a simulated machine, and of this one.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;
use tempfile::TempDir;

use super::limits::parse_limits;
use super::memory::parse_swaps;
use super::network::parse_interrupts;
use super::*;

const CARD: &str = "sys/devices/pci0000:00/0000:00:03.0";
const DISK: &str = "sys/devices/pci0000:00/0000:00:04.0";

/// Files of a machine with two nodes, a card in the second, and a disk in the first.
const FILES: &[(&str, &str)] = &[
    ("proc/sys/net/core/rmem_max", "212992\n"),
    ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("proc/sys/net/ipv4/udp_mem", "1 2 nonsense\n"),
    ("proc/net/softnet_stat", "0000000a 00000001 00000002 0\n"),
    (
        "proc/interrupts",
        "           CPU0       CPU1\n 40:   0   7  PCI-MSIX-0000:00:03.0   0-edge   virtio3-config\n \
         41:   5   6  PCI-MSIX-0000:00:03.0   1-edge   virtio3-input.0\n NMI:   0   0   Non-maskable\n \
         50:   1   2  PCI-MSI   1-edge   eth1-rx-0\n",
    ),
    ("proc/irq/41/smp_affinity_list", "0-1\n"),
    ("proc/irq/41/effective_affinity_list", "1\n"),
    ("proc/irq/50/smp_affinity_list", "0\n"),
    (
        "proc/self/limits",
        "Max open files  1024  20000  files\nMax locked memory  8388608  unlimited  bytes\n",
    ),
    ("proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n"),
    (
        "proc/swaps",
        "Filename  Type  Size  Used  Priority\n/dev/a  partition  100  3  -2\n/b  file  9  4  -3\n",
    ),
    ("proc/meminfo", "MemTotal: 1000 kB\nHugepagesize: 2048 kB\nHugePages_Free: 3\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_driver", "intel_pstate\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state10/name", "C6\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state10/latency", "133\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state10/disable", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C1\n"),
    ("sys/devices/system/node/node0/cpulist", "0-1\n"),
    ("sys/devices/system/node/node0/distance", "10 21\n"),
    ("sys/devices/system/node/node1/cpulist", "2-3\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/numa_node", "1\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/local_cpulist", "2-3\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/msi_irqs/40", "msix"),
    ("sys/devices/pci0000:00/0000:00:03.0/msi_irqs/41", "msix"),
    ("sys/devices/pci0000:00/0000:00:03.0/current_link_speed", "8.0 GT/s PCIe\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/current_link_width", "4\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/max_link_speed", "Unknown\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/max_link_width", "0\n"),
    ("sys/devices/pci0000:00/0000:00:03.0/virtio3/x", ""),
    ("sys/devices/pci0000:00/0000:00:04.0/numa_node", "-1\n"),
    ("sys/devices/pci0000:00/0000:00:04.0/target/vendor", "ATA     \n"),
    ("sys/class/net/bonding_masters", ""),
    ("sys/class/net/eth0/mtu", "9000\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0,00000000\n"),
    ("sys/class/net/eth0/queues/rx-1/rps_cpus", "0,00000004\n"),
    ("sys/class/net/eth0/queues/tx-0/x", ""),
    ("sys/class/net/eth1/mtu", "1500\n"),
    ("sys/block/sda/queue/nr_requests", "64\n"),
    ("sys/block/sda/queue/max_sectors_kb", "1280\n"),
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
    symlink(root.join(CARD).join("virtio3"), root.join("sys/class/net/eth0/device")).unwrap();
    symlink(root.join(DISK).join("target"), root.join("sys/block/sda/device")).unwrap();
    fs::create_dir_all(root.join("sys/class/block")).unwrap();
    symlink(root.join("sys/block/sda"), root.join("sys/class/block/sda")).unwrap();
    tree
}

fn value<T>(value: T) -> Reading<T> {
    Reading::Value(value)
}

fn list(text: &str) -> CoreList {
    CoreList::parse(text).unwrap()
}

#[test]
fn limits_on_sockets() {
    let tree = machine();
    let Settings { sockets, .. } = Settings::collect(tree.path(), &[]);
    assert_eq!(sockets.rmem_max, value(212_992));
    assert_eq!(sockets.tcp_rmem, value([4096, 131_072, 6_291_456]));
    assert_eq!(sockets.softnet.value().map(|done| (done.processed, done.squeezed)), Some((10, 2)));
    let Reading::NotReadable(why) = sockets.udp_mem else { panic!("that is no number") };
    assert!(why.contains("udp_mem") && why.contains("three numbers"), "{why}");
    assert_eq!(sockets.netdev_budget.value(), None);
}

#[test]
fn a_card_with_its_slot_interrupts_and_queues() {
    let tree = machine();
    assert_eq!(interface_names(tree.path()), ["eth0", "eth1"]);
    let card = Interface::collect(tree.path(), "eth0");
    assert!(card.is_card);
    assert_eq!((&card.node, &card.local_cores), (&value(1), &value(list("2-3"))));
    assert_eq!((&card.receive_queues, &card.is_spread), (&value(2), &value(true)));
    let interrupt =
        Interrupt { number: 41, name: "virtio3-input.0".into(), count: 11, cores: Some(list("1")) };
    assert_eq!(card.interrupts, [interrupt]);
    assert_eq!((card.link.gigatransfers, card.link.lanes), (value(8.0), value(4)));
    assert_eq!((card.link.gigatransfers_max.value(), card.link.lanes_max.value()), (None, None));
}

#[test]
fn cores_near_the_cards_of_one_node() {
    let tree = machine();
    assert_eq!(cores_near_cards(tree.path()), None, "no card is up");
    put(&tree, "sys/class/net/eth0/operstate", "up\n");
    put(&tree, "sys/class/net/eth1/operstate", "up\n");
    let near = Some((list("2-3"), vec!["eth0".to_owned()]));
    assert_eq!(cores_near_cards(tree.path()), near);
    // A second card, first on the other node, then on the same one.
    let slot = "sys/devices/pci0000:00/0000:00:05.0";
    put(&tree, &format!("{slot}/net/x"), "");
    symlink(tree.path().join(slot), tree.path().join("sys/class/net/eth1/device")).unwrap();
    put(&tree, &format!("{slot}/local_cpulist"), "0-1\n");
    assert_eq!(cores_near_cards(tree.path()), None);
    put(&tree, &format!("{slot}/local_cpulist"), "2-3\n");
    assert_eq!(cores_near_cards(tree.path()).unwrap().1, ["eth0", "eth1"]);
    fs::remove_dir_all(tree.path().join("sys/devices/system/node/node1")).unwrap();
    assert_eq!(cores_near_cards(tree.path()), None, "there is one node");
}

#[test]
fn an_interface_without_a_card() {
    let tree = machine();
    let interface = Interface::collect(tree.path(), "eth1");
    assert!(!interface.is_card);
    assert_eq!(interface.node.value(), None);
    // Old drivers name interrupts after the interface.
    assert_eq!(interface.interrupts.iter().map(|i| i.number).collect::<Vec<_>>(), [50]);
}

#[test]
fn processors_and_nodes() {
    let tree = machine();
    let Settings { processors, .. } = Settings::collect(tree.path(), &[]);
    assert_eq!((&processors.online, &processors.isolated), (&value(list("0-3")), &value(list(""))));
    assert_eq!((processors.governor, processors.may_boost), (value("powersave".into()), value(false)));
    let names: Vec<&str> = processors.idle_states.iter().map(|state| state.name.as_str()).collect();
    assert_eq!(names, ["POLL", "C1", "C6"]);
    assert_eq!(processors.idle_states[2].latency_us, value(133));
    assert_eq!(processors.idle_states[1].is_off.value(), None);
    assert_eq!(processors.nodes[&0].distances, value(vec![10, 21]));
    assert_eq!(processors.nodes[&1].distances.value(), None);
}

#[test]
fn memory_and_limits() {
    let tree = machine();
    let Settings { memory, process, .. } = Settings::collect(tree.path(), &[]);
    assert_eq!((memory.swappiness, memory.swap_used_bytes), (value(60), value(7 * 1024)));
    assert_eq!((memory.huge_pages_free, memory.transparent_huge_pages), (value(3), value("madvise".into())));
    assert_eq!(memory.zone_reclaim_mode.value(), None);
    let files = Limits { soft: Limit::At(1024), hard: Limit::At(20_000) };
    assert_eq!(process.descriptors, value(files));
    let locked = Limits { soft: Limit::At(8 << 20), hard: Limit::Unlimited };
    assert_eq!(process.locked_bytes, value(locked));
    assert_eq!((process.may_lock, process.is_admin), (value(true), value(false)));
}

#[test]
fn the_queue_of_a_disk() {
    let tree = machine();
    let queue = volume::Queue::collect(tree.path(), "sda");
    assert_eq!((queue.requests, queue.request_kib_max), (value(64), value(1280)));
    assert_eq!(queue.hardware_kib_max.value(), None);
    assert_eq!(queue.vendor, value("ATA".into()));
    let Reading::NotReadable(why) = queue.node else { panic!("-1 is no node") };
    assert!(why.contains("-1"), "{why}");
}

#[test]
fn a_software_raid() {
    let tree = machine();
    put(&tree, "sys/class/block/md0/md/level", "raid5\n");
    put(&tree, "sys/class/block/md0/md/stripe_cache_size", "256\n");
    put(&tree, "sys/class/block/md0/md/sync_action", "resync\n");
    let md = volume::Md::collect(tree.path(), "md0").unwrap();
    assert_eq!((md.stripe_cache_pages, md.sync_action), (value(256), value("resync".into())));
    assert_eq!(volume::Md::collect(tree.path(), "sda"), None);
}

#[test]
fn the_most_specific_route_leads() {
    let text = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth2\t0000010A\t00000000\t0001\t0\t0\t100\t0000FFFF\t0\t0\t0\n\
        eth1\t0000010A\t00000000\t0001\t0\t0\t50\t0000FFFF\t0\t0\t0\n\
        off\t0001010A\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0\nnonsense\n";
    let to = |address: &str| route_v4(text, address.parse().unwrap());
    if cfg!(target_endian = "little") {
        assert_eq!(to("10.1.1.7").as_deref(), Some("eth1"));
        assert_eq!(to("192.0.2.9").as_deref(), Some("eth0"));
    }
    assert_eq!(route_v4("", "10.1.1.7".parse().unwrap()), None);
}

#[test]
fn routes_of_ipv6() {
    let text = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
fd000000000000000000000000000001 00000400 00000003 00000000 00000003     eth1
fd000000000000000000000000000000 20 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000100 00000001 00000000 00200201     lo
";
    let to = |address: &str| route_v6(text, address.parse().unwrap());
    assert_eq!(to("fd00::9").as_deref(), Some("eth0"));
    assert_eq!(to("2001:db8::1").as_deref(), Some("eth1"));
}

#[test]
fn this_machine_can_be_read() {
    let root = Path::new("/");
    let settings = Settings::collect(root, &[std::env::temp_dir()]);
    assert!(settings.process.descriptors.value().is_some());
    assert_eq!(settings.volumes.len(), 1);
    assert!(interface_names(root).contains(&"lo".to_owned()));
}

proptest! {
    #[test]
    fn core_lists_come_back(cores in proptest::collection::btree_set(0u32..300, 0..40)) {
        let list = CoreList(cores);
        prop_assert_eq!(CoreList::parse(&list.to_string()), Some(list));
    }

    #[test]
    fn any_text_is_survived(text in ".*(\n.*){0,4}") {
        let _ = (CoreList::parse(&text), parse_swaps(&text), parse_interrupts(&text));
        let _ = parse_limits(&text, "Max open files");
        let _ = (route_v4(&text, [10, 0, 0, 1].into()), route_v6(&text, std::net::Ipv6Addr::LOCALHOST));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn any_contents_are_survived(text in ".*(\n.*){0,3}", chosen in 0..FILES.len()) {
        let tree = machine();
        put(&tree, FILES[chosen].0, &text);
        let _ = Settings::collect(tree.path(), &[]);
        for name in interface_names(tree.path()) {
            let _ = Interface::collect(tree.path(), &name);
        }
    }
}
